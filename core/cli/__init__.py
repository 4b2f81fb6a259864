"""The command line: a file a group of commands; `options`, `words` and `progress` are what they share."""
