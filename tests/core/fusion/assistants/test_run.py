"""Several assistants at once: what fails is left out in words, the rest goes on, and a cancelled run ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from core.errors import CancelledRunError, JudgeError, StoreError, UsageError
from core.fusion.assistants import (
    AssistantScores,
    assistants_for,
    given_scores,
    lower_is_better,
    make_assistant,
    metric_column,
    score_all,
)
from core.fusion.assistants.base import Assistant
from core.judging.base import OnProgress
from core.records import Item
from tests.core.fusion.assistants.conftest import ITEMS, golden_of

BARE = tuple(Item(f"t{i}", text, f"s{i}") for i, text in enumerate(("one", "two", "three")))


def made(name: str, compute: Callable[[Sequence[Item]], object]) -> Assistant:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        result = compute(items)
        on_progress(len(items), len(items))
        return result if isinstance(result, AssistantScores) else AssistantScores(np.array(result, dtype=float))

    return Assistant(name, "A number for tests.", None, None, frozenset(), "none", scorer)


def crash(items: Sequence[Item]) -> object:
    raise KeyError("no\nsuch <b>thing</b>")


def refuse(items: Sequence[Item]) -> object:
    raise JudgeError("The model x could not be read.")


def test_failures_are_left_out_in_words_and_the_rest_goes_on() -> None:
    nan = float("nan")
    assistants = [
        made("crashes", crash),
        made("refuses", refuse),
        made("all NaN", lambda items: [nan] * 4),
        made("constant", lambda items: [0.5] * 4),
        made("constant where scored", lambda items: [0.5, nan, 0.5, nan]),
        made("one only", lambda items: [nan, 2.0, nan, nan]),
        made("too few", lambda items: [1.0, 2.0]),
        made("infinite", lambda items: [np.inf, 1.0, 2.0, -np.inf]),
        made("fine", lambda items: [1.0, 2.0, 3.0, 4.0]),
        make_assistant("overlap_context"),
    ]
    found = score_all(assistants, ITEMS)
    assert found.left_out == {
        "crashes": "it failed: KeyError: 'no\\nsuch <b>thing</b>'",
        "refuses": "The model x could not be read.",
        "all NaN": "it scored none of the 4 items (first: No finite number came out.)",
        "constant": "it gave the same number, 0.5, to all 4 items it scored",
        "constant where scored": "it gave the same number, 0.5, to all 2 items it scored",
        "one only": "it scored 1 of the 4 items; at least 2 are needed",
        "too few": "too few returned numbers of shape (2,) for 4 items.",
        "overlap_context": "no item of this golden set has a context",
    }
    assert list(found.scores) == ["infinite", "fine"]
    np.testing.assert_array_equal(found.scores["infinite"].values, [nan, 1, 2, nan])
    assert [(u.item_id, u.reason) for u in found.scores["infinite"].unscored] == [
        ("a", "no verdict"),
        ("d", "no verdict"),
    ]
    assert found.scores["fine"].n_scored == 4


def test_no_items() -> None:
    assert score_all([make_assistant("overlap")], []).left_out == {"overlap": "there are no items"}


def test_a_name_may_come_once() -> None:
    with pytest.raises(UsageError, match="came twice: overlap"):
        score_all([make_assistant("overlap"), make_assistant("overlap")], ITEMS)


def test_progress_runs_over_all_assistants() -> None:
    seen: list[tuple[int, int]] = []
    score_all(
        [make_assistant("overlap"), made("crashes", crash), make_assistant("rouge1")],
        ITEMS,
        lambda done, asked: seen.append((done, asked)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (12, 12)
    assert all(asked == 12 for _, asked in seen)


@pytest.mark.parametrize("error", [CancelledRunError("cancelled"), StoreError("the disk"), ValueError("odd")])
def test_what_progress_raises_ends_the_run(error: Exception) -> None:
    def stop(done: int, asked: int) -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        score_all([make_assistant("overlap"), make_assistant("rouge1")], ITEMS, stop)


# ── numbers that are there, and the list of what can be asked for ────────────────────────────────────────────


def test_columns_keep_holes_and_direction() -> None:
    golden = golden_of(*ITEMS, metrics={"ter": (0.5, None, 0.1, 0.0), "bleu_1": (1.0, 2.0, 3.0, 4.0)})
    ter = make_assistant("metric_ter", golden=golden)
    assert not ter.higher_is_better
    found = ter.score(golden.items)
    np.testing.assert_array_equal(found.values, [0.5, np.nan, 0.1, 0.0])
    assert found.unscored[0].item_id == "b"
    assert "no number" in found.unscored[0].detail
    np.testing.assert_array_equal(ter.oriented(found.values), [-0.5, np.nan, -0.1, 0.0])
    np.testing.assert_array_equal(ter.flipped().oriented(found.values), found.values)
    assert metric_column(golden, "bleu_1").higher_is_better
    # a subset in another order, as in a split, and an item that the file does not have
    some = metric_column(golden, "metric_bleu_1").score([ITEMS[2], Item("new", "text"), ITEMS[0]]).values
    np.testing.assert_array_equal(some, [3.0, np.nan, 1.0])
    with pytest.raises(UsageError, match=r"no column 'metric_rouge'; it has metric_ter, metric_bleu_1"):
        make_assistant("metric_rouge", golden=golden)
    with pytest.raises(UsageError, match="say of which"):
        make_assistant("metric_ter")


def test_directions_by_name() -> None:
    lower = "ter TER lev_dist gpt2_ppl cer wer_mean n_misspel perplexity edit_distance".split()
    higher = "bleu_4 rouge1_f meteor counter character interest certainty cider unieval_overall nist".split()
    assert all(map(lower_is_better, lower))
    assert not any(map(lower_is_better, higher))


def test_given_scores_of_a_judge() -> None:
    one = given_scores("judge", "Verdicts.", {"a": 1.0, "b": None, "c": 3.0}, low=1, high=5)
    np.testing.assert_array_equal(one.score(ITEMS).values, [1.0, np.nan, 3.0, np.nan])
    assert one.missing(ITEMS) == ""


def test_identity_tells_apart_what_gives_other_numbers() -> None:
    same = {make_assistant("rouge1").identity, make_assistant("rouge1").identity, make_assistant(" rouge1 ").identity}
    assert len(same) == 1
    others = [
        make_assistant("rouge2"),
        make_assistant("rouge1", stemmed=False),
        make_assistant("unieval:some/model", question="Is it short?"),
        make_assistant("unieval:some/model", question="Is it long?"),
        given_scores("judge", "Verdicts.", {"a": 1.0, "b": None}),
        given_scores("judge", "Verdicts.", {"a": 1.0, "b": 2.0}),
    ]
    assert len(same | {one.identity for one in others}) == 7
    assert given_scores("judge", "Verdicts.", {"a": 1.0, "b": float("nan")}).identity == others[4].identity


def test_listing_and_asking_imports_nothing_heavy(repository: Path) -> None:
    code = """
import sys
from core.fusion.assistants import assistants_for, make_assistant, score_all
from core.records import AspectLabels, GoldenSet, Item, Scale
item = Item("a", "the cat", source="the cat", references=("a cat",))
golden = GoldenSet("g", "source_target", (item,), {"q": AspectLabels("q", Scale(1, 5), (1.0,))})
assert [one.missing(golden) for one in assistants_for(golden)]
assert make_assistant("nli:some/model").missing(golden) == ""
heavy = {"torch", "transformers", "nltk", "rouge_score", "bert_score", "sacrebleu", "sklearn", "pandas"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_what_a_golden_set_allows() -> None:
    golden = golden_of(*ITEMS, metrics={"ter": (0.5, None, 0.1, 0.0)})
    able = {one.name for one in assistants_for(golden) if not one.missing(golden)}
    assert able >= {"overlap", "rouge1", "rouge2_source_p", "bleu", "chrf", "similarity", "metric_ter"}
    assert not able & {"overlap_context", "similarity_context"}
    bare = {one.name: one.missing(golden_of(*BARE)) for one in assistants_for(golden_of(*BARE))}
    assert bare["overlap"] == "no item of this golden set has a source"
    assert bare["rouge1"] == bare["chrf"] == "no item of this golden set has references"
    assert all(bare.values())
    assert "rouge1_best" in able
    assert not [name for name in bare if name.endswith("_best")]
    for one in assistants_for(golden):
        assert one.measures.endswith(".")
        assert one.cost
        assert one.low is None or one.high is None or one.low < one.high


def test_numbers_stay_within_the_range_told() -> None:
    golden = golden_of(*ITEMS)
    able = [one for one in assistants_for(golden) if not one.missing(golden)]
    for one in able:
        values = one.score(ITEMS).values
        if one.low is not None and one.high is not None:
            assert np.nanmin(values) >= one.low - 1e-6, one.name
            assert np.nanmax(values) <= one.high + 1e-6, one.name


@pytest.mark.parametrize("name", ["", "magic", "nli:", "nli", ":x", "hf:bert-base", "metric", "rouge1_x", "offline:x"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UsageError):
        make_assistant(name)


def test_what_unknown_names_are_told() -> None:
    with pytest.raises(UsageError, match="hand them in with given_scores"):
        make_assistant("judge:judge.yaml")
    with pytest.raises(UsageError, match=r"Known: overlap, .*nli:MODEL"):
        make_assistant("magic")
    with pytest.raises(UsageError, match="needs a question"):
        make_assistant("unieval:some/model")
    assert "rate the coherence of" in make_assistant("unieval:some/model", aspect="coherence").measures
    assert make_assistant("hf:nli:some/model").name == "hf:nli:some/model"
    assert "model" in make_assistant("nli:some/model").needs
