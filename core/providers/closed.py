"""An endpoint that may not be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import ConsentError
from core.providers.base import OnReply, Reply, Request


@dataclass(frozen=True)
class ClosedProvider:
    """Stands where an endpoint may not be asked: kept replies are found under its name, and nothing is ever sent."""

    endpoint: str
    why: ConsentError

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """ConsentError, unless there is nothing to ask."""
        if requests:
            raise ConsentError(str(self.why), self.endpoint)
        return []

    def close(self) -> None:
        """Nothing to release."""
