"""The command line: one file per group of commands, with shared `options` and `output`."""
