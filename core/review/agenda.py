"""The questions that a meeting is asked: a change of criteria as one plain sentence that quotes whole sentences."""

from __future__ import annotations

import re

_LONGEST_QUOTE = 180
_BULLET = re.compile(r"^\s*(?:[-*•·]\s+|\d+[.)]\s+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z]|[\"“‘(])")


def change_question(old: str, new: str) -> str:
    """The question whether `old` is to become `new`.

    One sentence that came, went or took another's place is quoted whole; several, or an endless one, are counted.
    """
    before, after = sentences(old), sentences(new)
    came = [sentence for sentence in after if sentence not in before]
    went = [sentence for sentence in before if sentence not in after]
    quoted = [_quoted(sentence) for sentence in (*came, *went)]
    short = sum(map(len, quoted)) <= _LONGEST_QUOTE
    match len(came), len(went):
        case 0, 0:
            return "Should the criteria be set out like this?"
        case 1, 0:
            return f"Should the criteria also say {quoted[0]}?" if short else "Should the criteria gain one sentence?"
        case 0, 1:
            return f"Should the criteria no longer say {quoted[0]}?" if short else "Should one sentence go?"
        case 1, 1:
            says = f"Should the criteria say {quoted[0]} instead of {quoted[-1]}?"
            return says if short else "Should one sentence be put differently?"
    counted = [f"{_counted(came)} new" if came else "", f"{_counted(went)} gone" if went else ""]
    return f"Should the criteria be rewritten, {' and '.join(filter(None, counted))}?"


def sentences(text: str) -> list[str]:
    """The sentences of criteria without bullets and numbers of lines, in order."""
    lines = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [sentence for line in lines if line for sentence in _SENTENCE_END.split(line)]


def opening(text: str) -> str:
    """The first sentence, quoted, to know criteria by; "" where it is too long to help."""
    first = next(iter(sentences(text)), "")
    return _quoted(first) if 0 < len(first) <= _LONGEST_QUOTE else ""


def _quoted(sentence: str) -> str:
    return f"“{sentence.strip(' .;,')}”"


def _counted(listed: list[str]) -> str:
    return "one sentence" if len(listed) == 1 else f"{len(listed)} sentences"
