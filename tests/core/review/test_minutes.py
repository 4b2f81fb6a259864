"""Minutes as Markdown: what changed is marked so that Markdown shows it, wherever the change begins and ends."""

from __future__ import annotations

import datetime as dt

import pytest

from core.review.meetings import JOINER, AgendaItem, Meeting, Point, minutes


def diffed(old: str, new: str) -> str:
    """The paragraph of the minutes that tells the change."""
    item = AgendaItem("change", "t", subject_id="c2", parent_id="c1")
    meeting = Meeting(
        *("m", "p", "name", "g", "a", (Point(item, (), None),), "Ann"), dt.datetime(2026, 11, 21, tzinfo=dt.UTC), None
    )
    return minutes(meeting, {"c1": old, "c2": new}).split("## 1. t\n\n")[1].split("\n")[0]


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("Be clear.", "Be brief.", "Be ~~clear~~**brief**."),
        # "**" between a letter and a mark opens nothing in CommonMark (6.2, left-flanking): a joiner stands between
        ("a.", "a! b.", f"a**{JOINER}\\! b**."),
        ("Be clear! Now", "Be Now", "Be ~~clear\\!~~ Now"),
        ("(a)b", "b", f"~~(a){JOINER}~~b"),
    ],
)
def test_changes_are_marked_as_markdown_reads_them(old: str, new: str, marked: str) -> None:
    assert diffed(old, new) == marked
