"""What tests of judges and providers answer with, where they keep the answers, and recorded ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.providers.completions import Completion, Reply, Request, TokenLogprobs
from core.providers.scripted import ScriptedProvider, reply_to
from core.records import Usage


def completion(text: str, finish: str = "stop", *, logprobs: Sequence[TokenLogprobs] = ()) -> Completion:
    """A reply that used 10 tokens of prompt and 2 of its own, for a quarter of a dollar."""
    usage = Usage(requests=1, prompt_tokens=10, completion_tokens=2, cost=0.25)
    return Completion(text, finish, usage, logprobs=tuple(logprobs))


class Listening(ScriptedProvider):
    """Answers as `say` does (as the scripted provider, without), and keeps what it was asked."""

    def __init__(self, say: Callable[[Request], Reply] = reply_to, seed: int = 0) -> None:
        super().__init__(seed, self._answer)
        self.say = say
        self.asked: list[Request] = []

    def _answer(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.say(request)


class MemoryReplies:
    """A `ReplyStore` in a dict that also counts its look-ups."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.look_ups = 0

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        self.look_ups += 1
        return {key: self.replies[key] for key in keys if key in self.replies}

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        for key, text in replies:
            self.replies.setdefault(key, text)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a packed JSONL file of the reference data."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def responses_of(path: Path) -> dict[str, list[str]]:
    """Item → its recorded replies."""
    return {row["item_id"]: row["responses"] for row in rows_of(path)}
