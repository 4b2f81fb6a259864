"""Entry point of ``python -m core COMMAND``."""

import sys

from core.cli.main import app, main
from core.settings import tune_garbage_collector

__all__ = ["app", "main"]

if __name__ == "__main__":
    tune_garbage_collector()
    sys.exit(main())
