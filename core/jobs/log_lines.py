"""Log lines of a worker that hold no key, prompt, item's text or reply: errors are named by their class and place."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Literal

from core.errors import JobError, StoreError
from core.secret_values import hide

LogForm = Literal["text", "json"]
_ROOT = Path(__file__).parents[2]
_PLAIN = (StoreError, JobError)  # their messages are ours alone; others may quote a file or an endpoint


def log_to_stderr(form: LogForm) -> None:
    """Write Concord's own log lines to standard error, as text or as one JSON object each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(handlers=[handler])
    for name in ("concord", "core"):
        logging.getLogger(name).setLevel(logging.INFO)


class LineFormatter(logging.Formatter):
    """A log record as a line: errors by their class and where they came up, without what they say of data."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = record.msg % tuple(map(_bare, arguments)) if arguments else str(_bare(record.msg))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        where = []
        for frame in traceback.extract_tb(error.__traceback__) if error else ():  # the outermost first
            file = Path(frame.filename)
            short = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file.name
            where.append(f"{short}:{frame.lineno} in {frame.name}")
        if self._form == "json":
            fields: dict[str, Any] = {"at": at, "level": record.levelname, "logger": record.name, "message": said}
            fields |= {} if error is None else {"error": type(error).__name__, "where": where}
            return hide(json.dumps(fields, ensure_ascii=False))
        ending = "" if error is None else f"\n  {type(error).__name__} at " + "\n    ".join(where)
        return hide(f"{at} {record.levelname} {record.name}: {said}{ending}")


def _bare(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) and not isinstance(value, _PLAIN) else value
