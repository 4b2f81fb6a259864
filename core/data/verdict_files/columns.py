"""Which column of a recording plays which part: by its own name or an alias, told, and correctable."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from core.data.cells import folded
from core.data.columns import ALIASES as GOLDEN_ALIASES
from core.data.columns import KNOWN_ASPECTS, ColumnRoles, How, by_name
from core.data.verdict_files.recording import REPLY_OF_BATCH
from core.errors import UsageError

if TYPE_CHECKING:
    from core.data.verdict_files.recording import Recording

BY_ORDER = ("score_a_first", "score_b_first")
"""Columns of scores of pairs asked both ways round, with text A first and with text B first; high prefers B in both."""

Role = Literal["item_id", "replies", "score", "reason", "sample", "aspect"]
ROLES: tuple[Role, ...] = get_args(Role)

OWN_NAMES: Mapping[str, str] = {role: role for role in ROLES} | {"replies": "responses"}
ALIASES: Mapping[Role, tuple[str, ...]] = {
    "item_id": tuple("id custom_id example_id instance_id uid item key sample_id row_id idx index".split()),
    "replies": tuple(
        "response replies reply judge_response judge_reply judge_output raw_response raw_responses raw_output raw "
        "completions completion outputs output output_text generations generation answer text content message".split()
    ),
    "score": tuple(
        "rating value judge_score judge_rating llm_score scores grade points stars mark verdict prediction".split()
    ),
    "reason": tuple("explanation feedback rationale justification critique comment reasoning analysis".split()),
    "sample": tuple(
        "seed sample_index sample_number sample_no sample_idx repetition repeat trial draw run_index".split()
    ),
    "aspect": GOLDEN_ALIASES["aspect"],
}
PLAIN_REPLIES = frozenset(
    "responses response replies reply judge_response judge_reply judge_output raw_response raw_responses "
    f"raw_output {REPLY_OF_BATCH}".split()
)
"""Reply columns believed to be the judge's own words even beside a score; `output` or `text` may be what was judged."""

_SCORE_WORDS = ("score", "scores", "rating", "ratings", "grade", "value")


@dataclass(frozen=True)
class Columns(ColumnRoles):
    """The roles of a recording.  `also` lists the other columns that could play a role.

    `of_aspect` maps an aspect → the column of its scores, where the file holds several.
    """

    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_aspect: Mapping[str, str] = field(default_factory=dict)

    def check_role(self, role: str) -> None:
        """UsageError for a name that is no role in a recording."""
        if role not in ROLES:
            raise UsageError(f"{role!r} is no part of a recording; there are {', '.join(ROLES)}.")

    def corrected(self, changes: Mapping[Role, str | None]) -> Columns:
        """With a person's corrections, one after the other, as `with_role`."""
        columns = self
        for role, column in changes.items():
            columns = columns.with_role(role, column)
        return columns


def propose_columns(recording: Recording, aspect: str = "", aspects: Collection[str] = ()) -> Columns:
    """The columns of `recording` by name: a role's own name first, then aliases in their order.

    A column of scores named after `aspect` goes before a general one.  `aspects` are names to look for besides the
    usual ones.  Where a column could be the judged text rather than the judge's words, it is left in `also`.
    """
    names = recording.columns
    candidates = {role: _candidates(role, recording) for role in ROLES}
    of_aspect = _score_columns(names, [*sorted(KNOWN_ASPECTS), *aspects, aspect])
    of_reply = [c for c in names if _holds_replies(c) and _last(c) == folded(aspect) != ""]
    candidates["replies"] = of_reply + [c for c in candidates["replies"] if c not in of_reply]
    if aspect in of_aspect:
        candidates["score"] = [of_aspect[aspect], *(c for c in candidates["score"] if c != of_aspect[aspect])]
    if candidates["score"]:
        candidates["replies"].sort(key=lambda column: _last(column) not in PLAIN_REPLIES)  # stable
    roles: dict[str, str] = {}
    for role in ROLES:
        free = [column for column in candidates[role] if column not in roles.values()]
        if free and not (role == "replies" and candidates["score"] and not _plain(free[0])):
            roles[role] = free[0]
    if "replies" in roles and "score" not in roles and "reason" in roles:
        del roles["reason"]  # a reason explains a score; without one it may be the reply itself
    how_named: dict[str, How] = {
        role: "exact" if column.lower() == OWN_NAMES[role] else "alias" for role, column in roles.items()
    }
    also = {role: tuple(c for c in candidates[role] if c != roles.get(role)) for role in ROLES}
    return Columns(roles, names, how_named, {role: rest for role, rest in also.items() if rest}, of_aspect)


def _plain(column: str) -> bool:
    return column in PLAIN_REPLIES or _last(column) in PLAIN_REPLIES or _holds_replies(column)


def _candidates(role: Role, recording: Recording) -> list[str]:
    """Columns that could play `role`, best first: by name, a shallow one before a nested one of the same name."""
    columns = recording.columns
    if recording.of_batch and role == "replies":
        return [column for column in columns if column == REPLY_OF_BATCH]
    shallow = sorted(columns, key=lambda column: column.count("."))
    return by_name(shallow, (OWN_NAMES[role], *ALIASES[role]), _last)


def _last(column: str) -> str:
    return folded(column.rsplit(".", 1)[-1])


def _score_columns(columns: Sequence[str], aspects: Sequence[str]) -> dict[str, str]:
    """Aspect → the column of its scores: ``coherence``, ``score_coherence``, ``scores.coherence``.

    Of two aspects that differ in spelling only, the later one counts.
    """
    wanted = {folded(aspect): aspect for aspect in aspects if folded(aspect)}
    column_of: dict[str, str] = {}
    for column in columns:
        stem = "" if _holds_replies(column) else _without_score_words(_last(column))
        if stem in wanted:
            column_of.setdefault(wanted[stem], column)
    return column_of


def _holds_replies(column: str) -> bool:
    """Whether the column lies within an object of replies by aspect: ``responses.coherence``."""
    return "." in column and folded(column.split(".", 1)[0]) in PLAIN_REPLIES


def _without_score_words(name: str) -> str:
    for word in _SCORE_WORDS:
        name = re.sub(f"^{word}_|_{word}$", "", name)
    return name.removeprefix("judge_").removeprefix("llm_")
