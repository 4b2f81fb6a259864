"""Labels: nothing overwritten, nothing doubled.  Drafts: overwritten, taken away, never handed on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.records import GoldenSet
from core.store.database import metadata
from core.store.labels import Label
from core.store.store import Store
from core.store.transfer import LAYOUT


@pytest.fixture
def golden_id(store: Store, project: str, golden: GoldenSet) -> str:
    return store.goldens.add(project, golden)


def _said(store: Store, project: str, golden_id: str, rater: str | None = None) -> list[tuple[str, str, float | None]]:
    return [(row.rater, row.item_id, row.value) for row in store.labels.current(project, "l1", rater)]


def test_the_newest_label_of_each_rater_counts_and_the_others_stay(store: Store, project: str, golden_id: str) -> None:
    def save(rater: str, form: str, value: float | None, item_id: str = "a") -> None:
        store.labels.add(project, golden_id, [Label(rater, item_id, "coherence", value, "why \x00", "l1")], form=form)

    save("Ann", "f1", 2.0)
    save("Bo", "f2", 4.0)
    save("Ann", "f3", 3.0)
    save("Ann", "f4", None, "ä")
    assert _said(store, project, golden_id) == [("Bo", "a", 4.0), ("Ann", "a", 3.0), ("Ann", "ä", None)]
    assert _said(store, project, golden_id, "Ann") == [("Ann", "a", 3.0), ("Ann", "ä", None)]
    history = store.labels.history(project, "l1", "Ann")
    assert [(row.item_id, row.value) for row in history] == [("a", 2.0), ("a", 3.0), ("ä", None)]
    assert {row.comment for row in history} == {"why \x00"}


def test_many_raters_at_once_lose_nothing(store: Store, project: str, golden_id: str) -> None:
    def rate(number: int) -> None:
        label = Label(f"rater {number % 8}", "a", "coherence", float(number % 5), pass_id="l1")
        store.labels.add(project, golden_id, [label], form=f"form {number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rate, range(120)))
    assert sum(len(store.labels.history(project, "l1", f"rater {k}")) for k in range(8)) == 120
    assert len(_said(store, project, golden_id)) == 8


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_saved_leaves_with_no_project(store: Store, project: str) -> None:
    """Tables that stay behind: the list is exact, so that a new table has to say whether it goes."""
    assert set(metadata.tables) - set(LAYOUT) == {*("projects", "replies", "workers", "drafts", "blocks")}
    store.drafts.keep(project, "s", "Ann", "typed and not saved", "")
    left = {name: list(rows) for name, rows in store.transfers.dump(project)}
    assert "typed and not saved" not in str(left)
