"""Where criteria become the judge: beneath chosen criteria, an accepted proposal, and what a merge made."""

from __future__ import annotations

from core.project_records import CriteriaEntry
from pages.components.page import Opened


def draw_make_judge(page: Opened, view: CriteriaEntry) -> None:
    """The way from these criteria to the next version of the judge."""
