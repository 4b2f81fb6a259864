"""The judges of several aspects: which go together, what their verdicts are worth, what an item must have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import GoldenError, UsageError
from core.export.aspect_judges import TOGETHER
from core.records import Item, Scored, Unscored
from tests.awaiting import awaited

AspectFile = Callable[..., Path]
ITEMS = [Item(f"i{n}", f"The council will mend bridge {n}. " * (1 + n % 3), source="The bridge.") for n in range(4)]


def test_alone_they_are_the_judges_one_by_one(aspect_file: AspectFile) -> None:
    files = [aspect_file("coherence"), aspect_file("fluency", criteria=["Be brief.", "Be grammatical."])]
    judges = core.load_judges(files)
    scored = judges.score(ITEMS, explain=True)
    assert scored == {name: core.load_judge(file).score(ITEMS, explain=True) for name, file in zip(scored, files)}  # noqa: B905
    assert (judges.aspects, judges.calls_an_item, judges.marks) == (("coherence", "fluency"), 3, ())
    assert awaited(judges.score_async(ITEMS)) == judges.score(ITEMS)
    assert judges.n_together(ITEMS) == {"coherence": [1] * 4, "fluency": [1] * 4}


def test_together_they_cost_one_call_an_item_and_come_without_maps_and_intervals(aspect_file: AspectFile) -> None:
    files = [aspect_file("coherence"), aspect_file("fluency"), aspect_file("relevance")]
    judges = core.load_judges(files, together=True)
    scored = judges.score(ITEMS, coverage=0.9)
    assert list(scored) == ["coherence", "fluency", "relevance"]
    every = [verdict for verdicts in scored.values() for verdict in verdicts]
    assert all(isinstance(verdict, Scored) and verdict.calibrated is verdict.low is None for verdict in every)
    assert all(isinstance(verdict, Scored) and verdict.explanation == "" for verdict in every)
    assert (judges.calls_an_item, judges.calls_alone, judges.spent.requests) == (1, 3, 4)
    assert judges.marks_of["fluency"] == (TOGETHER.format(others="coherence, relevance"),)
    assert judges.n_together(ITEMS) == dict.fromkeys(scored, [3] * 4)
    assert awaited(judges.score_async(ITEMS)) == scored
    assert all("Score:" in verdict.explanation for verdict in judges.score(ITEMS, explain=True)["fluency"])  # type: ignore[union-attr]


def test_an_item_that_lacks_what_one_judge_needs_is_unscored_on_that_aspect_alone(aspect_file: AspectFile) -> None:
    files = [
        aspect_file("coherence", task={"needs": ["target"]}),
        aspect_file("fluency", task={"needs": ["target"]}),
        aspect_file("relevance", task={"needs": ["target", "source"]}),
    ]
    judges = core.load_judges(files, together=True)
    items = [ITEMS[0], Item("bare", "A text."), Item("empty", " ", source="s")]
    scored = judges.score(items)
    kinds = {
        name: [verdict.reason if isinstance(verdict, Unscored) else "" for verdict in own]
        for name, own in scored.items()
    }
    assert kinds == {
        "coherence": ["", "", "missing input"],
        "fluency": ["", "", "missing input"],
        "relevance": ["", "missing input", "missing input"],
    }
    lost = scored["relevance"][1]
    assert isinstance(lost, Unscored)
    assert "has no source" in lost.detail
    assert judges.n_together(items)["relevance"] == [3, 0, 0]
    assert judges.n_together(items)["fluency"] == [3, 2, 0]
    with pytest.raises(GoldenError, match="the judge of relevance rates each item beside its source, and no item has"):
        judges.score([Item("bare", "A text.")])


WORDS: list[tuple[dict[str, Any], str]] = [
    ({"judge": {"spec": "scripted:4"}}, "model scripted:3 there, scripted:4 here"),
    ({"how": {"samples": 3, "temperature": 1.0}}, "samples 1 there, 3 here; temperature 0.0 there, 1.0 here"),
    ({"how": {"output": "score_only", "prompt": "score_score_only.v1"}}, "form rate_explain there, score_only here"),
    ({"how": {"persona": "annotator"}}, "persona none there, annotator here"),
    ({"how": {"structured": True, "prompt": "score_rate_explain_json.v1"}}, "structured False there, True here"),
    ({"task": {"kind": "single"}}, "kind of item source_target there, single here"),
    (
        {"how": {"output": "score_only", "weighted": True, "prompt": "score_weighted.v1"}},
        "the judge weighs one bare number by its probability",
    ),
    ({"how": {"output": "free_text", "prompt": "score_free_text.v1"}}, "leaves the form of the answer open"),
    ({"how": {"prompt": "score_score_only.v1"}}, "is asked by score_score_only.v1, a prompt that has none for several"),
]


@pytest.mark.parametrize(("changes", "words"), WORDS)
def test_what_cannot_be_asked_together_is_named_with_what_differs(
    aspect_file: AspectFile, changes: dict[str, Any], words: str
) -> None:
    files = [aspect_file("coherence"), aspect_file("fluency", **changes)]
    with pytest.raises(UsageError) as refused:
        core.load_judges(files, together=True)
    assert words in str(refused.value)
    assert "fluency.yaml: " in str(refused.value)
    assert core.load_judges(files).aspects == ("coherence", "fluency"), "alone any judges go"


def test_aspect_scale_definition_criteria_steps_and_room_may_differ(aspect_file: AspectFile) -> None:
    files = [
        aspect_file("coherence"),
        aspect_file(
            "style",
            task={"scale": {"low": 0.0, "high": 1.0, "step": 1.0}, "definition": "House style."},
            how={"steps": "1. Read.", "max_tokens": 900},
            criteria=["Be brief.", "Be plain."],
        ),
    ]
    judges = core.load_judges(files, together=True)
    scored = judges.score(ITEMS)
    assert {verdict.value for verdict in scored["style"] if isinstance(verdict, Scored)} <= {0.0, 0.5, 1.0}
    assert judges.calls_an_item == 2


def test_other_files_one_file_and_one_aspect_twice_are_refused(aspect_file: AspectFile, judge_file: Path) -> None:
    coherence, fluency = aspect_file("coherence"), aspect_file("fluency")
    with pytest.raises(UsageError, match=r"judge.yaml: offline is no language model"):
        core.load_judges([coherence, judge_file], together=True)
    with pytest.raises(UsageError, match=r"a judge file for each; .*coherence.yaml is the only one"):
        core.load_judges([coherence], together=True)
    with pytest.raises(UsageError, match="No judge file came"):
        core.load_judges([])
    for again in (aspect_file("coherence", "second.yaml"), aspect_file("  Coherence!", "third.yaml")):
        with pytest.raises(UsageError, match=rf"{again.name}: is a judge of .*oherence.*, and so is .*coherence.yaml"):
            core.load_judges([coherence, fluency, again])
    fused = Path(__file__).parent / "files" / "fused.yaml"
    with pytest.raises(UsageError, match=r"fused.yaml: is no judge that was calibrated on one aspect"):
        core.load_judges([coherence, fused])
