"""``python -m core COMMAND``."""

import sys

from core.cli.main import app, main

__all__ = ["app", "main"]

if __name__ == "__main__":
    sys.exit(main())
