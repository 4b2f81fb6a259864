"""Metrics by a causal model: held against transformers on a tiny random decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import UsageError
from core.judging.local import ONE_PASS, LocalJudge
from core.judging.registry import NAMED, make_judge
from core.metrics import asks_about_one_aspect, make_metric, score_or_reason
from core.records import Criteria, Item, Scale, Task
from core.settings import Settings
from tests.core.local_models import save_model, tokenizer

pytestmark = pytest.mark.slow  # the import of transformers

ITEMS = (
    Item("a", "It rained.", "s", source="Rain fell all day.", references=("It was wet.", "Rain.")),
    Item("b", "Dogs bark.", "s", context="A talk.", source="Hello.", references=("Dogs are loud.",)),
    Item("c", "Nobody came.", references=()),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("causal"))


def _mean_log_probability(folder: Path, prompt: str, text: str) -> float:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    before = tokenizer()(prompt)["input_ids"]
    own = tokenizer()(text, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logs = model(torch.tensor([before + own])).logits[0].double().log_softmax(-1)
    return float(torch.stack([logs[len(before) - 1 + n, token] for n, token in enumerate(own)]).mean())


def _prompt(item: Item, kind: str) -> str:
    from core.judging.render import score_frame

    (message,) = score_frame(Task("fluency", kind, Scale(0, 1)), item, "score_likelihood.v1").messages("")  # type: ignore[arg-type]
    return f"{message.content}\n\n"


def test_gptscore_is_the_mean_log_probability_after_source_and_aspect(folder: Path) -> None:
    metric = make_metric(f"gptscore:{folder}", aspect="fluency")
    scores = metric.score(ITEMS)
    kinds = ("source_target", "source_context_target", "single")
    for item, kind, value in zip(ITEMS, kinds, scores.values, strict=True):
        alone = Item("x", "", source=item.source, context=item.context)
        assert value == pytest.approx(_mean_log_probability(folder, _prompt(alone, kind), item.target), abs=1e-3)
    assert str(folder) in metric.measures
    assert np.allclose(metric.score(ITEMS[:1]).values, scores.values[:1], atol=1e-4)


def test_gptscore_of_references_is_the_likeliest_and_needs_one(folder: Path) -> None:
    scores = make_metric(f"gptscore_reference:{folder}", aspect="fluency").score(ITEMS)
    each = [
        _mean_log_probability(folder, _prompt(Item("x", "", source=text), "source_target"), ITEMS[0].target)
        for text in ITEMS[0].references
    ]
    assert scores.values[0] == pytest.approx(max(each), abs=1e-3)
    assert [lost.item_id for lost in scores.unscored] == ["c"]
    assert np.isnan(scores.values[2])


def test_the_prompted_baseline_is_the_one_pass_judge_without_criteria(folder: Path) -> None:
    scores = make_metric(f"hf:prompted:{folder}", aspect="fluency").score(ITEMS)
    judge = make_judge(f"hf:{folder}", Settings(), sampling=ONE_PASS, gate=NAMED)
    assert isinstance(judge, LocalJudge)
    plain = Item("x", ITEMS[0].target, source=ITEMS[0].source)
    task = Task("fluency", "source_target", Scale(1, 5))
    assert scores.values[0] == pytest.approx(
        judge.score(task, [plain], [Criteria("", "fluency")]).values[0, 0], abs=1e-5
    )
    assert ((scores.values >= 1) & (scores.values <= 5)).all()


def test_they_ask_about_one_aspect_and_keep_apart_by_it(folder: Path, tmp_path: Path) -> None:
    for kind in ("gptscore", "gptscore_reference", "prompted"):
        with pytest.raises(UsageError, match="aspect"):
            make_metric(f"{kind}:{folder}")
        name = f"{kind}:{folder}"
        assert asks_about_one_aspect(f"hf:{name}")
        assert make_metric(name, aspect="fluency").identity != make_metric(name, aspect="coherence").identity
    assert not asks_about_one_aspect("nli:x")
    unsure = make_metric(f"prompted:{save_model(tmp_path, sure=False)}", aspect="fluency").score(ITEMS)
    assert np.isnan(unsure.values).all()
    assert "lay on the numbers 1 to 5" in unsure.unscored[0].detail
    reason = score_or_reason(make_metric(f"gptscore:{tmp_path}/no", aspect="fluency"), ITEMS)
    assert isinstance(reason, str)
    assert "no model folder" in reason
