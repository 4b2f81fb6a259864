"""Thoughts that a model writes into its reply: never read as the verdict, never taken into criteria."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(?P<close>/?)think(?:ing)?>", re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """`text` with blanks in the place of its thoughts, so that whatever stands after them keeps its place.

    An end without a beginning (some servers put that into the prompt) closes thoughts that began with the reply;
    thoughts without an end go on to the end of the reply.
    """
    tags = list(_TAG.finditer(text)) if "think" in text.lower() else []
    if not tags:
        return text
    pieces, kept_from, thinking = [], 0, bool(tags[0]["close"])
    for tag in tags:
        if not thinking:
            pieces.append(text[kept_from : tag.start()])
            kept_from = tag.start()
        if tag["close"]:
            pieces.append(" " * (tag.end() - kept_from))
            kept_from = tag.end()
        thinking = not tag["close"]
    pieces.append(" " * (len(text) - kept_from) if thinking else text[kept_from:])
    return "".join(pieces)
