"""Numbers of assistants kept, so that no text is scored twice by the same model: in the store, or in a folder.

A block of items and what decides its numbers make its key; what cannot be read counts as not there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from core.files import replacing
from core.fusion.assistants.base import Assistant, AssistantScores
from core.judging.base import OnProgress
from core.private import make_private
from core.records import Item, Unscored, content_digest

BLOCK = 200
"""Items kept together: what a killed process may have to score again."""


class Blocks(Protocol):
    """Where texts are kept by key (`core.store.blocks`, `Folder`)."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Folder:
    """A file for each key below `home`, for commands that need no store."""

    home: Path

    def get(self, key: str) -> str | None:
        """The text under `key`; None also where it cannot be read."""
        try:
            return self._place(key).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def put(self, key: str, text: str) -> None:
        """Whole or not at all; a full disk costs the keeping, never the scores."""
        path = self._place(key)
        with suppress(OSError):
            make_private(path.parent)
            with replacing(path, durable=False) as part:
                part.write_text(text, encoding="utf-8")

    def _place(self, key: str) -> Path:
        name = key.split(":")[1]
        return self.home / "assistants" / name[:2] / f"{name[2:34]}.json"


def kept(assistant: Assistant, blocks: Blocks) -> Assistant:
    """The same assistant, which looks into `blocks` first and leaves there what it has computed.

    Numbers that were handed in (columns, scores from elsewhere) are not kept, nor is what fails.
    """
    if not assistant.needs:
        return assistant
    identity = content_digest("kept scores", [assistant.identity, _weights(assistant)])

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        parts: list[AssistantScores] = []
        for start in range(0, len(items), BLOCK):
            block = items[start : start + BLOCK]
            key = content_digest("block", [identity, [astuple(item) for item in block]])
            found = _read(blocks.get(key), block)
            if found is None:
                found = assistant.score(block, partial(_further, on_progress, start, len(items)))
                blocks.put(key, _written(found, block))
            parts.append(found)
            on_progress(start + len(block), len(items))
        return AssistantScores(
            np.concatenate([np.empty(0), *(part.values for part in parts)]),
            tuple(one for part in parts for one in part.unscored),
            " ".join(dict.fromkeys(part.note for part in parts if part.note)),
        )

    return replace(assistant, scorer=scorer)


def _further(on_progress: OnProgress, before: int, asked: int, done: int, _: int) -> None:
    on_progress(before + done, asked)


def _weights(assistant: Assistant) -> str:
    """What tells the weights of a model in a folder apart from others put there later; "" for any other."""
    if "model" not in assistant.needs:
        return ""
    from core.repeval.states.model import folder_digest

    named = assistant.name.removeprefix("hf:").partition(":")[2]
    places = [Path(one).expanduser() for one in (named, named.rpartition("@")[0]) if one]
    return next((folder_digest(place) for place in places if place.is_dir()), "")


def _read(text: str | None, block: Sequence[Item]) -> AssistantScores | None:
    if text is None:
        return None
    try:
        body = json.loads(text)
        values = np.array([np.nan if one is None else float(one) for one in body["values"]])
        unscored = tuple(Unscored(block[k].item_id, reason, detail) for k, reason, detail in body["unscored"])
        found = AssistantScores(values, unscored, str(body["note"]))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return found if values.shape == (len(block),) else None


def _written(scores: AssistantScores, block: Sequence[Item]) -> str:
    place = {item.item_id: k for k, item in enumerate(block)}
    body = {
        "values": [None if np.isnan(value) else float(value) for value in scores.values],
        "unscored": [
            [place[lost.item_id], lost.reason, lost.detail] for lost in scores.unscored if lost.item_id in place
        ],
        "note": scores.note,
    }
    return json.dumps(body, allow_nan=False)
