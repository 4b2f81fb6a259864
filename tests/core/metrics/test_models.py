"""Model-backed metrics against the same computation written straight in transformers (or bert-score), one by one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core.metrics import make_metric, score_or_reason
from core.records import Item
from tests.core.local_models import save_model, tokenizer
from tests.core.metrics.conftest import SIZES, small_config

pytestmark = pytest.mark.slow  # the import of transformers


def classifier_logits(folder: str, first: str, second: str) -> Any:
    """(n_outputs,) of one pair, alone in its batch."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer(first, second, return_tensors="pt")).logits[0].double()


def test_nli_is_the_probability_of_entailment(nli_model, items):
    expected = [float(classifier_logits(nli_model, i.source, i.target).softmax(0)[2]) for i in items]
    assert np.ptp(expected) > 0.01  # the random model does tell the items apart
    verdicts = make_metric(f"nli:{nli_model}").score(items)
    np.testing.assert_allclose(verdicts.values, expected, atol=1e-5)
    assert (verdicts.unscored, verdicts.note) == ((), "")


def test_nli_of_a_long_source_is_the_best_chunk(nli_model):
    # 32 tokens a window: chunks of 32 // 2 - 4 = 12 tokens, so two sentences of 6 a chunk
    sentences = ["the cat sat on it .", "the dog ran on it .", "people was seen by it .", "a house was under it ."]
    item = Item("a", "the cat ran", "s", source=" ".join(sentences))
    parts = [" ".join(sentences[:2]), " ".join(sentences[2:])]
    each = [float(classifier_logits(nli_model, part, item.target).softmax(0)[2]) for part in parts]
    best = make_metric(f"nli:{nli_model}").score([item]).values[0]
    assert best == pytest.approx(max(each), abs=1e-5)
    assert max(each) != pytest.approx(min(each), abs=1e-4)


def test_regression_is_the_single_output(regression_model, items):
    beside_source = [float(classifier_logits(regression_model, i.source, i.target)) for i in items]
    verdicts = make_metric(f"regression:{regression_model}").score(items)
    np.testing.assert_allclose(verdicts.values, beside_source, atol=1e-5)
    best = [max(float(classifier_logits(regression_model, r, i.target)) for r in i.references) for i in items]
    verdicts = make_metric(f"regression_reference:{regression_model}").score(items)
    np.testing.assert_allclose(verdicts.values, best, atol=1e-5)
    assert np.ptp(best) > 0.01


def test_bertscore_equals_the_package(encoder_model, items):
    import bert_score

    references = [list(item.references) for item in items]
    _, _, expected = bert_score.score(
        [item.target for item in items], references, model_type=encoder_model, num_layers=2, device="cpu"
    )
    verdicts = make_metric(f"bertscore:{encoder_model}").score(items)
    np.testing.assert_allclose(verdicts.values, expected.numpy(), atol=1e-5)
    assert np.ptp(verdicts.values) > 0.01


def seq2seq(folder: str) -> tuple[Any, Any]:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def test_likelihood_of_an_encoder_decoder_is_bartscore(bart_model, items):
    tokenizer, model = seq2seq(bart_model)

    def likelihood(source: str, target: str) -> float:
        inputs = tokenizer(source, return_tensors="pt", return_token_type_ids=False)
        return -model(**inputs, labels=tokenizer(target, return_tensors="pt")["input_ids"]).loss.item()

    verdicts = make_metric(f"likelihood:{bart_model}").score(items)
    np.testing.assert_allclose(verdicts.values, [likelihood(i.source, i.target) for i in items], atol=1e-5)
    assert np.ptp(verdicts.values) > 0.01
    best = [max(likelihood(r, i.target) for r in i.references) for i in items]
    np.testing.assert_allclose(make_metric(f"likelihood_reference:{bart_model}").score(items).values, best, atol=1e-5)


def test_likelihood_of_a_causal_model_counts_the_target_alone(tmp_path, items):
    import torch
    from transformers import AutoModelForCausalLM

    folder = save_model(tmp_path / "causal")
    model = AutoModelForCausalLM.from_pretrained(folder)

    def mean_log_probability(source: str, target: str) -> float:
        before = tokenizer()(f"{source}\n\n")["input_ids"]
        own = tokenizer()(target, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logs = model(torch.tensor([before + own])).logits[0].double().log_softmax(-1)
        return float(np.mean([float(logs[len(before) - 1 + n, token]) for n, token in enumerate(own)]))

    found = make_metric(f"likelihood:{folder}").score(items)
    expected = [mean_log_probability(item.source, item.target) for item in items]
    np.testing.assert_allclose(found.values, expected, atol=1e-4)
    assert np.ptp(expected) > 1e-4
    best = [max(mean_log_probability(text, item.target) for text in item.references) for item in items]
    np.testing.assert_allclose(make_metric(f"likelihood_reference:{folder}").score(items).values, best, atol=1e-4)
    alone = make_metric(f"likelihood:{folder}").score(items[1:2]).values
    np.testing.assert_allclose(alone, expected[1:2], atol=1e-4)


# ── what cannot be read or run ───────────────────────────────────────────────────────────────────────────────


def test_long_inputs_are_cut_and_counted(nli_model, regression_model):
    long = Item("a", "the cat ran", "s", source="the dog sat on the mat and " * 8)
    verdicts = make_metric(f"regression:{regression_model}").score([long, Item("b", "it", "s", source="the cat")])
    assert np.isfinite(verdicts.values).all()
    assert verdicts.note == f"1 inputs exceeded the limit of {regression_model} (32 tokens) and were shortened."
    many = Item("a", "the cat ran", "s", source="the dog sat on the mat and ran . " * 90)
    assert "only the first 64 chunks" in make_metric(f"nli:{nli_model}").score([many]).note


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nli:{tmp}/nowhere", "Model folder not found:"),
        ("nli:nobody/no-such-model", r"could not be read: .*Enter the id of a Hugging Face repository"),
        ("nli:{encoder}", "no trained weights for .*its scores would be random"),
        ("regression:{nli}", "A regression model must have one output, but .* has 3"),
        (
            "likelihood:{nli}",
            r"\(BertForSequenceClassification\) doesn't suit this metric.* language model that writes",
        ),
    ],
)
def test_what_cannot_be_loaded_is_left_out_in_words(nli_model, encoder_model, items, tmp_path, name, reason):
    """Pickled and damaged weights: `tests/core/repeval/test_extraction.py`."""
    words = score_or_reason(make_metric(name.format(tmp=tmp_path, nli=nli_model, encoder=encoder_model)), items)
    assert isinstance(words, str), words
    assert re.search(reason, words), words


READ_BY: dict[str, set[str]] = {
    "nli": {"nli", "bart_classifier", "decoder_classifier"},
    "regression": set(),
    "likelihood": {"bart", "t5", "decoder"},
    "bertscore": {"nli", "tokens", "bart", "bart_classifier", "t5", "decoder", "decoder_classifier", "decoder_tokens"},
}
"""By kind of metric, the checkpoints of `checkpoints` that it may read; no other."""


@pytest.fixture(scope="module")
def checkpoints(save: Callable[..., str], nli_model: str, bart_model: str, t5_model: str) -> dict[str, str]:
    """Folders of one checkpoint of each architecture.  A head's weights may have the names of another's (`tokens`
    beside `nli`), or be tied and never missing (`bart_classifier`, `decoder_classifier`)."""
    import transformers

    labels: dict[str, Any] = {"id2label": {0: "aligned", 1: "entailment"}}
    bart, clip = small_config("Bart"), {"vocab_size": 64, "image_size": 8, "patch_size": 4, **SIZES}
    bart.update(labels)
    decoder = {"vocab_size": 64, "num_key_value_heads": 2, "tie_word_embeddings": True, **SIZES}
    llama = transformers.LlamaConfig(**decoder, **labels)
    seeing = transformers.CLIPConfig(text_config=clip, vision_config=clip, projection_dim=16)
    hearing = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16, "num_mel_bins": 8}
    speech = transformers.WhisperConfig(vocab_size=64, encoder_layers=1, decoder_layers=1, pad_token_id=0, **hearing)
    folders = {
        "tokens": save(20, "BertForTokenClassification", small_config("Bert", **labels)),
        "bart_classifier": save(21, "BartForSequenceClassification", bart, 64),
        "decoder": save(22, "LlamaForCausalLM", llama),
        "decoder_classifier": save(23, "LlamaForSequenceClassification", llama),
        "decoder_tokens": save(24, "LlamaForTokenClassification", llama),
        "pictures": save(25, "ViTModel", transformers.ViTConfig(image_size=8, patch_size=4, **SIZES)),
        "pictures_and_text": save(26, "CLIPModel", seeing),
        "speech": save(27, "WhisperForConditionalGeneration", speech),
    }
    return {"nli": nli_model, "bart": bart_model, "t5": t5_model, **folders}


@pytest.mark.parametrize("kind", READ_BY)
def test_a_checkpoint_of_another_architecture_is_refused(kind, checkpoints, items):
    for called, folder in checkpoints.items():
        words = score_or_reason(make_metric(f"{kind}:{folder}"), items)
        refused = isinstance(words, str) and re.search(
            r"doesn't suit this metric|reads .*Choose|no trained weights for|must be named|must have one output", words
        )
        assert bool(refused) == (called not in READ_BY[kind]), (called, words)
        assert "it failed" not in str(words), (called, words)


def test_remote_code_is_never_run(nli_model, items, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(nli_model, folder)
    config = json.loads((folder / "config.json").read_text("utf-8")) | {"model_type": "foreign"}
    config["auto_map"] = {"AutoConfig": "foreign.Config", "AutoModelForSequenceClassification": "foreign.Model"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "foreign.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n", "utf-8")
    assert "which Concord never runs" in str(score_or_reason(make_metric(f"nli:{folder}"), items))
    assert not (tmp_path / "ran").exists()
