"""Where jobs keep what they need: URLs and files, from `Settings` alone."""

from __future__ import annotations

from pathlib import Path

from core.settings import Settings


def store_url(settings: Settings) -> str:
    """The store's URL: `CONCORD_DATABASE_URL`, or a SQLite file in `CONCORD_HOME`."""
    return settings.database_url or f"sqlite:///{settings.home.absolute() / 'concord.sqlite'}"


def lock_file(settings: Settings) -> Path:
    """Held by the one worker of this `CONCORD_HOME` for as long as it lives."""
    return settings.home.absolute() / "worker.lock"


def watch_file(settings: Settings) -> Path:
    """Process id of the web process that last asked for a worker."""
    return settings.home.absolute() / "worker.watch"


def log_file(settings: Settings) -> Path:
    """What a worker that the app started says, tracebacks of failed runs among it."""
    return settings.home.absolute() / "worker.log"
