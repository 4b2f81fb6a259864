"""``python -m core COMMAND``."""

from core.cli.main import app, main
from core.cluster import end_process
from core.memory import collect_seldom

__all__ = ["app", "main"]

if __name__ == "__main__":
    collect_seldom()
    end_process(main())
