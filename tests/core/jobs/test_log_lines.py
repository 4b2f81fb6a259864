"""Log lines of the worker never say what a run works on."""

from __future__ import annotations

import logging
import sys

from core.errors import GoldenError, StoreError
from core.jobs.queue import LineFormatter

SECRET = "the judged text itself"


def test_a_line_names_errors_by_class_and_place() -> None:
    try:
        raise GoldenError(SECRET)
    except GoldenError as error:
        record = logging.LogRecord("concord.jobs", 30, "f", 1, "run %s failed: %s", ("r1", error), sys.exc_info())
    line = LineFormatter().format(record)
    assert SECRET not in line
    assert "run r1 failed: GoldenError" in line
    assert "tests/core/jobs/test_log_lines.py" in line


def test_what_the_store_says_of_itself_stays() -> None:
    record = logging.LogRecord("concord", 30, "f", 1, "trying again: %s", (StoreError("The disk is full."),), None)
    assert LineFormatter().format(record).endswith("trying again: The disk is full.")
