"""Replays stored replies by request key: a recorded session runs again anywhere, without its endpoint.

The file is JSONL: a first line ``{"endpoint": URL, "model": NAME}``, then one ``{"key": KEY, "reply": {...}}`` a line,
the reply as the reply cache stores it.  With ``"pace": N`` in the first line N replies are given a second, so that
people can watch a replay.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import ProviderError, UsageError
from core.providers.cached import as_cached, reply_from_json
from core.providers.completions import OnReply, Reply, Request

_LONGEST_PAUSE = 1.0


@dataclass(frozen=True)
class RecordedSession:
    """A recorded session; `replies` are key → stored JSON text, `pace` the replies a second (0 = at once)."""

    endpoint: str
    model: str
    replies: dict[str, str]
    pace: float = 0.0


def read_recording(path: Path) -> RecordedSession:
    """The recording at `path`.  UsageError names the line that cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The recording {path} cannot be read: {error}") from error
    try:
        head = json.loads(lines[0])
        endpoint, model, pace = str(head["endpoint"]), str(head["model"]), max(0.0, float(head.get("pace", 0)))
    except (IndexError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f'{path}, line 1: expected {{"endpoint": URL, "model": NAME}}.') from error
    replies = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            row = json.loads(line)
            replies[str(row["key"])] = json.dumps(row["reply"])
            reply_from_json(replies[str(row["key"])])
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f'{path}, line {number}: expected {{"key": KEY, "reply": {{...}}}}.') from error
    return RecordedSession(endpoint, model, replies, pace)


def write_recording(
    path: Path, endpoint: str, model: str, replies: Iterable[tuple[str, str]], *, pace: float = 0.0
) -> None:
    """Write (key, stored JSON text) pairs as `read_recording` reads them."""
    head = {"endpoint": endpoint, "model": model} | ({"pace": pace} if pace else {})
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n")
        for key, stored in replies:
            file.write(json.dumps({"key": key, "reply": json.loads(stored)}) + "\n")


class RecordedProvider:
    """Answers from a recording; a request that was not recorded is an error, never a guess.

    It waits between replies where the recording has a pace; `on_reply` may raise meanwhile, as when a run is cancelled.
    """

    def __init__(self, recording: RecordedSession, name: str) -> None:
        self.recording = recording
        self.name = name

    @property
    def endpoint(self) -> str:
        return self.recording.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Raises ProviderError at the first request that the recording does not hold."""
        replies: list[Reply] = []
        for index, request in enumerate(requests):
            stored = self.recording.replies.get(request.key(self.endpoint))
            if stored is None:
                raise ProviderError(
                    f"{self.name} holds no reply to request {index + 1} of {len(requests)}.",
                    hint="A recording answers only what was asked when it was made: "
                    "same items, criteria, prompts and settings. Use a live judge for anything else.",
                )
            if self.recording.pace:
                time.sleep(min(_LONGEST_PAUSE, 1 / self.recording.pace))
            reply = as_cached(reply_from_json(stored))
            replies.append(reply)
            if on_reply is not None:
                on_reply(index, reply)
        return replies

    def close(self) -> None:
        """Nothing is held."""
