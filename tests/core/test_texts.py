"""Texts in any script, and texts without anything to read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import core
from core.comparison.examination import pair_lengths, text_lengths
from core.judging.judge_specs import make_judge
from core.judging.offline.text import cut
from core.metrics import make_metric
from core.records import Criteria, Item, Scale, Task, Unscored, is_blank
from core.repeval.model import ModelSpec
from core.settings import Settings
from tests.core.local_models import save_model

BLANK = ["", "  \n\t", "\u200b\u200b", "\u00a0", "\ufeff", "\u200e\u200d", "\u3164", "\u2800", "\u2060\ufe0f"]
SAMPLE = Path(__file__).parents[2] / "sample_data" / "summaries.jsonl"
FILES = Path(__file__).parent / "data" / "values"


@pytest.mark.parametrize("text", BLANK)
def test_a_text_without_visible_characters_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["-", "a", "é", "你", "🙂", "\u200bа"])
def test_any_visible_character_makes_a_text(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("天气很好。", "今天的天气很好，我们去公园散步。"),
        ("いい天気。", "今日はとてもいい天気ですね。"),
        ("สวัสดี", "สวัสดีครับวันนี้อากาศดีมาก"),
        ("ភាសា", "ភាសាខ្មែរជាភាសាផ្លូវការ"),
        ("ພາສາ", "ພາສາລາວເປັນພາສາທາງການ"),
        ("မြန်မာ", "မြန်မာဘာသာစကားသည်"),
    ],
)
def test_scripts_without_spaces_are_measured_in_characters(short: str, long: str) -> None:
    items = (Item("a", short, context=long), Item("b", long, context=short))
    lengths, unit = text_lengths(items)
    assert unit == "characters"
    assert lengths[0] > 1
    assert lengths[1] > lengths[0]
    difference = lengths[1] - lengths[0]
    assert pair_lengths(items).tolist() == [difference, -difference]
    assert len(cut(long).words) == lengths[1]  # the offline judge's features count the same


# ── nothing to read ──────────────────────────────────────────────────────────────────────────────────────────


ITEMS = [Item("ok", "The harbour was closed for two days.", source="The storm closed the harbour for two days.")]
ITEMS += [Item(f"blank-{k}", text, source=ITEMS[0].source) for k, text in enumerate(BLANK)]
TASK = Task("quality", "source_target", Scale(1, 5, 1))


@pytest.mark.parametrize("kind", ["offline", "scripted", "recorded"])
def test_every_judge_leaves_blank_texts_unscored(kind: str, tmp_path: Path) -> None:
    recorded = tmp_path / "scores.jsonl"
    recorded.write_text("".join(json.dumps({"item_id": item.item_id, "score": 4}) + "\n" for item in ITEMS))
    judge = make_judge(f"recorded:{recorded}" if kind == "recorded" else kind, Settings.from_environment())
    scores = judge.score(TASK, ITEMS, [Criteria("Good texts are clear.", "quality")])
    assert np.isfinite(scores.values[0]).tolist() == [True] + [False] * len(BLANK)
    assert {lost.reason for lost in scores.unscored[scores.criteria_ids[0]]} == {"missing input"}


def test_metrics_leave_blank_texts_unscored_also_where_numbers_were_handed_in() -> None:
    golden = core.GoldenSet("set", "source_target", tuple(ITEMS), {}, metrics={"given": (0.5,) * len(ITEMS)})
    for name in ("overlap", "metric_given", "rouge1_source_p"):
        scores = make_metric(name, golden=golden).score(ITEMS)
        assert np.isfinite(scores.values).tolist() == [True] + [False] * len(BLANK), name
        assert len(scores.unscored) == len(BLANK)


def test_repeval_leaves_blank_texts_unscored(tmp_path: Path) -> None:
    golden, model = core.load_golden(SAMPLE), ModelSpec(str(save_model(tmp_path / "model", words=True)))
    settings = core.RepEvalSettings(model=model, random_vectors=0)
    fitted = core.fit_repeval(golden, next(iter(golden.aspects)), settings)
    items = core.load_items(FILES / "repeval_empty.jsonl").items
    verdicts = {verdict.item_id: verdict for verdict in fitted.score(items)}
    lost = {name for name, verdict in verdicts.items() if isinstance(verdict, Unscored)}
    assert lost == {"empty", "space", "zw", "nbsp", "bom", "null"}
    assert isinstance(verdicts["zw"], Unscored)
    assert verdicts["zw"].reason == "missing input"
