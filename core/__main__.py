"""Entry point of ``python -m core COMMAND``."""

import sys

from core.cli.main import app, main
from core.settings import collect_seldom

__all__ = ["app", "main"]

if __name__ == "__main__":
    collect_seldom()
    sys.exit(main())
