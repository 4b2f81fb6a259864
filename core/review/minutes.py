"""Minutes of a criteria review meeting as Markdown: what was on the agenda, who voted how, what was decided and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from core.review.meetings import Meeting, Point
from core.wording import word_diff

JOINER = "\u2060"
"""Neither seen nor a place to break a line."""
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def minutes(meeting: Meeting, texts: Mapping[str, str]) -> str:
    """Markdown of a meeting; `texts` maps criteria id → text, for the changes that were on the agenda.

    All text of people and models is escaped: it shows as it stands.
    """
    lines = [f"# {_plain(meeting.name)}", ""]
    when = f"{meeting.began_at:%Y-%m-%d %H:%M} UTC"
    until = f" to {meeting.closed_at:%H:%M}" if meeting.closed_at else ", still open"
    opened = f", opened by {_plain(meeting.author)}" if meeting.author else ""
    lines += [f"{when}{until}{opened}. Aspect: {_plain(meeting.aspect)}.", ""]
    voters = sorted({vote.voter for point in meeting.points for vote in point.votes})
    if voters:
        lines += [f"Voted: {', '.join(_plain(name) for name in voters)}.", ""]
    for number, point in enumerate(meeting.points, 1):
        lines += [f"## {number}. {_plain(point.item.title)}", "", *_body(point, texts)]
    decided = sum(point.decision is not None for point in meeting.points)
    lines += ["---", "", f"{decided} of {len(meeting.points)} points decided."]
    return "\n".join(lines) + "\n"


def _body(point: Point, texts: Mapping[str, str]) -> Iterator[str]:
    item = point.item
    if item.item_id:
        yield from (f"Item {_plain(item.item_id)}.", "")
    if item.text:
        yield from (*(f"> {_plain(line)}" for line in item.text.splitlines()), "")
    if item.subject_id in texts and item.parent_id in texts:
        yield from (_diff(texts[item.parent_id], texts[item.subject_id]), "")
    elif item.kind == "change" and item.subject_id in texts:
        yield from (*(f"> {_plain(line)}" for line in texts[item.subject_id].splitlines()), "")
    tally = point.tally
    if point.votes:
        yield f"Votes: {tally['for']} for, {tally['against']} against, {tally['abstain']} abstained."
        yield ""
        for vote in point.votes:
            note = f": {_plain(vote.note)}" if vote.note else ""
            yield f"- {_plain(vote.voter)}, {vote.choice}{note}"
        yield ""
    if point.decision is None:
        yield from ("Not decided.", "")
        return
    by = f" (entered by {_plain(point.decision.actor)})" if point.decision.actor else ""
    yield from (f"**{point.decision.verdict.capitalize()}**{by}: {_plain(point.decision.reason)}", "")


def _diff(old: str, new: str) -> str:
    """One paragraph: what left struck through, what came in bold."""
    marks = {"same": "", "removed": "~~", "added": "**"}
    pieces = word_diff(old, new)
    paragraph = ""
    for piece, following in zip_longest(pieces, pieces[1:]):
        text, mark = _plain(piece.text).replace("\n", " / "), marks[piece.change]
        inner = text.strip()
        if not inner or not mark:
            paragraph += text
            continue
        lead, _, tail = text.partition(inner)
        after = tail or ("" if following is None else marks[following.change] or following.text)
        paragraph += lead
        paragraph += f"{mark}{_joined(paragraph[-1:], inner, after[:1])}{mark}{tail}"
    return paragraph


def _joined(before: str, inner: str, after: str) -> str:
    """`inner` so that marks around it count: between a letter and a full stop Markdown reads `**` as two stars."""
    opens = JOINER if before.isalnum() and not inner[0].isalnum() else ""
    closes = JOINER if after.isalnum() and not inner[-1].isalnum() else ""
    return f"{opens}{inner}{closes}"


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
