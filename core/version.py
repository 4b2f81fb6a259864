"""The version of this Concord, as files that leave it name it; a test holds that `pyproject.toml` says the same."""

from __future__ import annotations

VERSION = "0.1.0"
