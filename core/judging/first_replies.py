"""The first replies of a judge: where not one of them can be read, going on would only cost."""

from __future__ import annotations

from collections import Counter

from core.errors import JudgeError
from core.secret_values import hide

FIRST_RATINGS, FIRST_DRAFTS = 16, 8
"""So many replies in which nothing could be read, with none that could before them, end a run."""

CUT_OFF_THINKING = (
    "cut off while thinking: the token limit was used up before an answer. Raise max_tokens (CONCORD_MAX_TOKENS; "
    "in a judge file judge.sampling.max_tokens), or have the model think less (CONCORD_REASONING_EFFORT)."
)
_LOOKED_AT, _SHOWN = 2_000, 160
"""Characters of a reply that is shown."""

CUT_OFF = "cut off at the token limit. Raise max_tokens (--max-tokens, or CONCORD_MAX_TOKENS)."


class FirstReplies:
    """Counts why replies could not be read until the first that could."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._problems: Counter[str] = Counter()
        self._examples: dict[str, str] = {}  # problem → the first reply with it
        self._any_read = False

    @property
    def settled(self) -> bool:
        """Whether a reply was read, so that no more need be looked at."""
        return self._any_read

    def note(self, problem: str, most: int, text: str = "") -> None:
        """One more reply, with why it could not be read ("" where it could).  JudgeError at the last of `most`.

        The error shows the start of a reply's `text`.
        """
        if not problem:
            self._any_read = True
        if self._any_read:
            return
        self._problems[problem] += 1
        if text.strip():
            self._examples.setdefault(problem, text)
        n = self._problems.total()
        if n >= most:
            common = self._problems.most_common(3)
            reasons = "; ".join(f"{count} × {words}" for words, count in common)
            shown = next((self._examples[words] for words, _ in common if words in self._examples), "")
            raise JudgeError(
                f"Stopped early: none of the first {n} replies of {self._who} could be read. {reasons}"
                f"{f' One of them: “{_start_of(shown)}”.' if shown else ''} Nothing more is asked; put this right and "
                "start again."
            )


def _start_of(reply: str) -> str:
    """The first words of a reply on one line, without keys and what a terminal would take for a command."""
    line = "".join(c if c.isprintable() else " " for c in hide(reply[:_LOOKED_AT]))
    line = " ".join(line.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN].rstrip()} …"
