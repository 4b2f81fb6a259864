"""Endpoints that an imported project would ask, and what people here have said of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AskedEndpoint:
    """An endpoint (base URL) that something in a project asks, with the models asked there.

    `trusted`: the key of this installation goes there once it is allowed (the endpoint of `OPENAI_BASE_URL`, OpenAI's
    own, this machine); to any other only where a person says so as well.  `allowed` and `with_key` are what `by` said
    at `at`; "" and None where nobody has.
    """

    endpoint: str
    models: tuple[str, ...]
    trusted: bool = False
    allowed: bool = False
    with_key: bool = False
    by: str = ""
    at: datetime | None = None
