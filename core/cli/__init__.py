"""The command line: a file a group of commands; `options` and `output` are what they share."""
