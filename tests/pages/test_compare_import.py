"""Bringing in a judge on screen, against a real store: understood, matched, corrected, added, refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.project_records import JudgeEntry
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import HOSTILE, button, choose, draw, grids, harmless, press, texts, upload


@pytest.fixture
def store(store: Store, settings: Settings) -> Store:
    Place(store, settings, golden_of(2, 2, labels=(1, 2, 3, 4), aspects=("wit",)))
    return store


@pytest.fixture
def screen(store: Store, settings: Settings) -> AppTest:
    return draw(settings, "compare.import_view", "wit", role="admin")


def test_only_reviewers_see_the_uploader(store: Store, settings: Settings) -> None:
    screen = draw(settings, "compare.import_view", "wit", role="annotator")
    assert not screen.get("file_uploader")
    assert "requires the reviewer role. Your role is annotator" in screen.info[0].value


def bring(screen: AppTest, rows: list[Any] | bytes, name: str = "judge.jsonl") -> AppTest:
    data = rows if isinstance(rows, bytes) else "".join(json.dumps(row) + "\n" for row in rows).encode()
    return upload(screen, name, data)


def told(screen: AppTest) -> str:
    """What a person reads, the metrics as well."""
    return " ".join([texts(screen), *(f"{m.label} {m.value}" for m in screen.metric)])


def judges(store: Store) -> list[JudgeEntry]:
    (project,) = store.projects.all()
    return store.judges.all(project.project_id)


def test_a_file_is_understood_shown_and_added(screen: AppTest, store: Store) -> None:
    bring(screen, [{"id": "i0", "reply": "Score: 2"}, {"id": "i1", "reply": "?"}, {"id": "x", "reply": "Score: 1"}])
    shown = told(screen)
    assert "Rows 3" in shown
    assert "Items matched 2 of 4" in shown
    assert "Items scored 1" in shown
    assert "Unread replies 1 of 2" in shown
    assert "1 item id in the file isn't in the golden set. These items are ignored: x" in (shown)
    columns, unread = grids(screen)[0], grids(screen)[1]
    assert list(columns["column"]) == ["id", "reply"]
    assert set(columns["found"]) == {"guessed from the name"}
    assert list(unread["begins"]) == ["?"]
    screen.text_input[0].set_value("GPT").run()
    press(screen, "Add this judge")
    (view,) = judges(store)
    np.testing.assert_array_equal(view.judge.values, [2, np.nan, np.nan, np.nan])
    assert view.name == "GPT"
    assert "GPT was added as a judge. The judge scored 1 of 4 items for wit" in told(screen)
    assert not screen.button, "the upload is empty again"
    bring(screen, [{"id": "i0", "reply": "Score: 2"}, {"id": "i1", "reply": "?"}, {"id": "x", "reply": "Score: 1"}])
    press(screen, "Add this judge")
    assert "has already been imported. The judge GPT hasn't changed" in told(screen)
    assert len(judges(store)) == 1


def test_a_column_can_be_corrected(screen: AppTest, store: Store) -> None:
    bring(screen, [{"id": "9", "key": "i0", "rating": 4}])
    assert "None of the 1 item ids" in told(screen)
    assert button(screen, "Add this judge").disabled
    choose(screen, "item ID", "key")
    assert "Items matched 1 of 4" in told(screen)
    press(screen, "Add this judge")
    assert judges(store)[0].judge.values[0] == 4


def test_scores_stay_on_their_own_scale(screen: AppTest, store: Store) -> None:
    bring(screen, [{"id": f"i{k}", "score": 20 * k} for k in range(4)])
    press(screen, "Add this judge")
    judge = judges(store)[0].judge
    assert not judge.on_scale
    np.testing.assert_array_equal(judge.values, [0, 20, 40, 60])


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("judge.jsonl", b"", "empty"),
        ("judge.jsonl", b"{", "isn't valid JSON"),
        ("judge.csv", b"a,b\n1,2\n", "column with item ids"),
        ("judge.jsonl", b'{"item_id": "i0", "score": 1}\n{"item_id": "", "score": 1}\n', "row 2"),
    ],
)
def test_what_cannot_be_read_is_told_in_words(screen: AppTest, name: str, data: bytes, says: str) -> None:
    bring(screen, data, name)
    assert says in told(screen)
    assert not any(button.label == "Add this judge" for button in screen.button)


def test_a_doubled_item_is_named(screen: AppTest) -> None:
    bring(screen, [{"item_id": "i0", "score": 1}, {"item_id": "i0", "score": 2}])
    assert "rows 1 and 2" in told(screen)


def test_hostile_text_is_shown_letter_by_letter(screen: AppTest) -> None:
    bring(screen, [{"item_id": HOSTILE, HOSTILE: 1, "rating": HOSTILE}, {"item_id": "i0", "rating": HOSTILE}])
    harmless(screen)
