"""Where criteria become the judge: beside chosen criteria, an accepted proposal, what a merge or a meeting made."""

from __future__ import annotations

from core.project_records import CriteriaEntry
from core.review.judge_versions import VersionOrigin
from pages.components import judge_view
from pages.components.page import Opened


def draw_make_judge(page: Opened, view: CriteriaEntry, origin: VersionOrigin | None = None) -> None:
    """The way from these criteria to the next version of the judge; without `origin` their own tells what made them."""
    if view.text:
        primary = view.origin == "edit"
        origin = origin or origin_of(view)
        judge_view.draw_make(page, view.aspect, [view.criteria_id], origin=origin, primary=primary)


def origin_of(view: CriteriaEntry) -> VersionOrigin:
    """What a version made of these criteria is said to come from."""
    if view.origin != "edit":
        return "criteria"
    return "merge" if len(view.parents) > 1 else "edit"
