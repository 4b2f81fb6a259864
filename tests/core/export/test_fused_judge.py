"""A fused judge out of a file with the face of a calibrated one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import load_items, load_judge
from core.data.texts import KnownTexts
from core.errors import GoldenError, JudgeError, UsageError
from core.export.fused_file import PartRecipe, fused_card
from core.export.fused_judge import FusedJudge
from core.export.judge_reading import open_file
from core.export.judge_writing import yaml_text
from core.fusion.estimators import make_estimator
from core.records import Item, Scale, Scored, Unscored
from core.verdicts import Verdicts
from tests.awaiting import awaited
from tests.core.export.conftest import GOLDEN, HELD, LABELS, MATRIX

Card = dict[str, Any]
ITEMS = load_items(Path(__file__).parents[3] / "sample_data" / "summaries.jsonl").items[:8]


@dataclass
class Twos:
    """Gives every item a 2, and counts its openings and closings."""

    log: list[str] = field(default_factory=list)
    marks: tuple[str, ...] = ()

    def open(self, card: Mapping[str, Any]) -> Twos:
        self.log.append("open")
        return self

    def score(self, items: Sequence[Item]) -> Verdicts:
        return Verdicts(Scored(item.item_id, 2.0) for item in items)

    def close(self) -> None:
        self.log.append("close")


def written(path: Path, *parts: PartRecipe) -> Path:
    state = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4)).state() | {"parts": [one.name for one in parts]}
    no_texts = KnownTexts((), ())
    card = fused_card(GOLDEN, "wit", texts=no_texts, state=state, parts=parts, alignment=HELD, measured={})
    path.write_text(yaml_text(card), "utf-8")
    return path


def opened(path: Path, twos: Twos, *said: str) -> FusedJudge:
    return FusedJudge.of(open_file(path, "fusion").card, twos.open, marks=said)


def estimated(first: float, second: float) -> float:
    score = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4)).score(np.array([[first], [second]]))
    return float(score[0])


def test_a_real_file_scores_like_its_parts_joined(fused_card: Card, write_card: Any) -> None:
    judge = load_judge(write_card(fused_card, name="fused.yaml"))
    assert isinstance(judge, FusedJudge)
    together = judge.score(ITEMS)
    assert all(isinstance(one, Scored) for one in together)
    assert judge.score_one(ITEMS[2]).item_id == ITEMS[2].item_id
    assert [judge.score_one(item) for item in ITEMS] == [
        Scored(one.item_id, pytest.approx(one.value, abs=1e-9)) for one in together if isinstance(one, Scored)
    ]
    assert awaited(judge.score_async(ITEMS)) == together
    assert (judge.marks, judge.task.aspect, judge.task.scale) == ((), "relevance", Scale(1.0, 5.0, 1.0))
    assert judge.score([]) == ()
    judge.close()
    judge.close()


def test_the_judge_inside_stays_open_between_calls(tmp_path: Path, offline_card: Card) -> None:
    path = written(tmp_path / "f.yaml", PartRecipe("mine", judge=offline_card), PartRecipe("other"))
    twos = Twos()
    judge = opened(path, twos)
    for _ in range(3):
        (one,) = judge.score([Item("a", "A text.")], metrics={"other": [1.0]})
        assert isinstance(one, Scored)
        assert one.value == pytest.approx(estimated(2.0, 1.0))
    assert twos.log == ["open"]
    judge.close()
    assert twos.log == ["open", "close"]


def test_a_part_that_cannot_be_computed_is_a_mark(tmp_path: Path, offline_card: Card) -> None:
    path = written(tmp_path / "f.yaml", PartRecipe("mine", judge=offline_card), PartRecipe("bleurt"))
    judge = opened(path, Twos(), "Said before.")
    assert judge.needs == ("metric_bleurt",)
    assert judge.marks == ("Said before.",)
    found = judge.score([Item("a", "A text."), Item("b", "A text.")])
    assert [type(one) for one in found] == [Scored, Scored]
    first, second = judge.marks
    assert first == "Said before."
    assert second.startswith("The part bleurt could not be computed and counts as its mean: it needs")


def test_what_a_judge_inside_says_is_said_once(tmp_path: Path, offline_card: Card) -> None:
    path = written(tmp_path / "f.yaml", PartRecipe("mine", judge=offline_card), PartRecipe("other"))
    judge = opened(path, Twos(marks=("Scored by another.",)))
    for _ in range(2):
        judge.score([Item("a", "A text.")], metrics={"other": [1.0]})
    assert judge.marks == ("Scored by another.",)


def test_metrics_are_one_number_an_item(tmp_path: Path) -> None:
    judge = opened(written(tmp_path / "f.yaml", PartRecipe("one"), PartRecipe("two")), Twos())
    items = [Item("a", "A text."), Item("b", "A text.")]
    with pytest.raises(GoldenError, match="1 values came for 2 items"):
        judge.score(items, metrics={"one": [1.0]})
    with pytest.raises(UsageError, match="No part of the fusion can be computed"):
        judge.score(items)
    found = judge.score(items, metrics={"one": [1.0, None], "two": [0.0, None]})
    assert [type(one) for one in found] == [Scored, Unscored]


def test_a_frame_brings_the_metrics(tmp_path: Path) -> None:
    judge = opened(written(tmp_path / "f.yaml", PartRecipe("one"), PartRecipe("two")), Twos())
    frame = pd.DataFrame({"text": ["A text.", "B text."], "metric_one": [1.0, 2.0], "metric_two": [0.0, float("nan")]})
    found = judge.score_frame(frame)
    mean = MATRIX[1].mean()
    assert found["score"].tolist() == pytest.approx([estimated(1.0, 0.0), estimated(2.0, mean)])
    assert found["calibrated"].isna().all()


def test_another_judge_cannot_be_put_in(fused_card: Card, write_card: Any) -> None:
    with pytest.raises(UsageError, match="a fused judge, which holds its own judges"):
        load_judge(write_card(fused_card, name="fused.yaml"), judge="offline")


def test_the_judge_inside_is_checked_too(fused_card: Card, write_card: Any) -> None:
    (inside,) = [part for part in fused_card["parts"] if "judge" in part]
    inside["judge"]["task"]["scale"]["low"] = "one"
    with pytest.raises(JudgeError, match=r"the part offline: task\.scale\.low must be a number"):
        load_judge(write_card(fused_card, name="fused.yaml"))


def test_an_edited_file_is_refused_or_marked(fused_card: Card, write_card: Any) -> None:
    fused_card["fusion"]["intercept"] = 4.9
    path = write_card(fused_card, seal=False, name="fused.yaml")
    with pytest.raises(JudgeError, match="was changed after the export"):
        load_judge(path)
    (mark,) = load_judge(path, accept_edited=True).marks
    assert "changed after its export" in mark
