"""The Python face: what `core` offers under its own name, and the command line prints (the names are in `core`)."""
