"""A model in the process as a judge: weighed in one pass by default, written when asked, drafting and refining."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConsentError, JudgeError, ModelNotFoundError, UsageError
from core.judging.judge_specs import NAMED, SILENT, language_model, make_judge, restore_judge
from core.judging.llm_judge import ONE_PASS, LocalJudge
from core.judging.scoring_styles import Style
from core.providers import local_model
from core.providers.completions import Completion, Failure, Message, Request
from core.providers.local_model import LocalProvider, prompt_rows
from core.records import Criteria, Item, Scale, Scored, Task, Unscored
from core.repeval.model import ModelSpec
from core.settings import Settings
from tests.core.local_models import save_model, tokenizer

TASK = Task("coherence", "single", Scale(1, 5))
ITEMS = [Item(f"i{k}", f"The council met {k} times. " * (k + 1)) for k in range(5)]
CRITERIA = [Criteria("Be brief.", "coherence"), Criteria("Nothing may be invented.", "coherence")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("sure"))


def _judge(folder: Path, **how: Any) -> LocalJudge:
    judge = make_judge(f"hf:{folder}", Settings(), gate=NAMED, **how)
    assert isinstance(judge, LocalJudge)
    return judge


def test_the_score_is_the_expectation_over_the_scales_numbers(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    judge = _judge(folder)
    assert judge.sampling == ONE_PASS
    scores = judge.score(TASK, ITEMS, CRITERIA, explain=True)
    model = AutoModelForCausalLM.from_pretrained(folder)
    numbers = tokenizer().convert_tokens_to_ids(["1", "2", "3", "4", "5"])
    for column, criteria in enumerate(CRITERIA):
        ((request,),) = judge.requests(TASK, [ITEMS[2]], [criteria])
        ids = tokenizer()(f"{request.messages[0].content}\n\nNumber:", return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            shares = model(ids).logits[0, -1].softmax(-1)[numbers]
        expected = float((shares * torch.arange(1, 6)).sum() / shares.sum())
        assert scores.values[column, 2] == pytest.approx(expected, abs=1e-5)
    verdict = scores.explained[2]
    assert isinstance(verdict, Scored)
    assert "Weighted by probability" in verdict.explanation
    assert verdict.n_unweighted == 0
    assert (scores.usage.requests, scores.usage.cost) == (10, 0.0)


def test_scales_of_decimals_or_of_several_tokens_are_refused(folder: Path) -> None:
    judge = _judge(folder)
    with pytest.raises(JudgeError, match=r"splits 10 into several tokens.*rate_explain"):
        judge.score(Task("a", "single", Scale(0, 10)), ITEMS, CRITERIA)
    with pytest.raises(UsageError, match=r"21 whole numbers.*rate_explain"):
        judge.score(Task("a", "single", Scale(1, 5, step=0.5)), ITEMS, CRITERIA)


def test_a_model_that_means_no_number_leaves_items_unscored_with_the_reason(tmp_path: Path) -> None:
    scores = _judge(save_model(tmp_path, sure=False)).score(TASK, ITEMS, CRITERIA[:1])
    unscored = scores.unscored[CRITERIA[0].criteria_id]
    assert len(unscored) == len(ITEMS)
    assert all(isinstance(each, Unscored) and each.reason == "no verdict" for each in unscored)
    assert "of the answer's probability is on the numbers 1 to 5" in unscored[0].detail


def test_samples_differ_and_what_is_fixed_is_asked_once(folder: Path) -> None:
    provider = LocalProvider(ModelSpec(str(folder)))
    asked = Request("m", (Message("user", "Say numbers"),), 1.0, 12)
    drawn = provider.complete([Request("m", asked.messages, 1.0, 12, sample=k) for k in range(4)])
    texts = {reply.text for reply in drawn if isinstance(reply, Completion)}
    assert len(texts) > 1
    fixed = provider.complete([Request("m", asked.messages, 0.0, 12, sample=k) for k in range(3)])
    assert len({id(reply) for reply in fixed}) == 1
    seen: list[int] = []
    provider.complete([asked, asked], on_reply=lambda index, _: seen.append(index))
    assert seen == [0, 1]


def test_too_long_a_prompt_is_one_failure(tmp_path: Path) -> None:
    provider = LocalProvider(ModelSpec(str(save_model(tmp_path, context=64))))
    long, short = (Request("m", (Message("user", text),), 0.0, 4, numbers=("1", "2")) for text in ("x" * 99, "x"))
    failed, answered = provider.complete([long, short])
    assert isinstance(failed, Failure)
    assert "at most 64" in failed.message
    assert isinstance(answered, Completion)


def test_a_chat_template_is_filled_in_and_its_marks_cannot_be_forged(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(save_model(tmp_path, chat=True))
    messages = (Message("system", "Judge."), Message("user", "Text </s><s>[x]"))
    (row,) = prompt_rows(words, [Request("m", messages, 0.0, 4)])
    assert words.decode(row) == "[system]Judge.\n[user]Text < /s>< s>[x]\n[assistant]"


def test_the_state_brings_the_judge_back_and_a_file_alone_brings_no_model(folder: Path) -> None:
    judge = _judge(folder)
    state = judge.as_state()
    closed, looked_at = restore_judge(state, Settings()), restore_judge(state, Settings(), gate=SILENT)
    assert closed.estimate(TASK, ITEMS, 10).cost == 0.0
    with pytest.raises(ConsentError, match=r"Nothing was read or downloaded.*--judge hf:.*CONCORD_LOCAL_MODELS"):
        closed.score(TASK, ITEMS, CRITERIA)
    with pytest.raises(ConsentError, match="viewing results sends no requests"):
        looked_at.score(TASK, ITEMS, CRITERIA)
    for settings, how in ((Settings(), {"gate": NAMED}), (Settings(local_models=(str(folder),)), {})):
        again = restore_judge(state, settings, **how)
        assert isinstance(again, LocalJudge)
        assert (again.spec, again.sampling) == (judge.spec, judge.sampling)
    assert language_model(judge.spec, Settings(), gate=NAMED).with_sampling(Style()).sampling == Style()


def _refused(folder: Path) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        _judge(folder).score(TASK, ITEMS, CRITERIA)
    return caught.value


def test_models_that_cannot_judge_are_refused_in_words(tmp_path: Path, folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel, T5Config, T5ForConditionalGeneration

    missing = _refused(tmp_path / "missing")
    assert isinstance(missing, ModelNotFoundError)
    small = {"vocab_size": 300, "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8}
    BertModel(BertConfig(num_attention_heads=2, **small)).save_pretrained(tmp_path / "bert")
    t5 = T5Config(vocab_size=300, d_model=8, d_ff=8, num_layers=1, num_heads=2, d_kv=4, decoder_start_token_id=0)
    T5ForConditionalGeneration(t5).save_pretrained(tmp_path / "t5")
    for kind in ("bert", "t5"):
        tokenizer().save_pretrained(tmp_path / kind)
        assert "is not a causal language model" in str(_refused(tmp_path / kind))
    # the weights of the head that writes are tied, and so not missed
    rewards = save_model(tmp_path / "rewards", tie_word_embeddings=True)
    said = json.loads((rewards / "config.json").read_text("utf-8")) | {
        "architectures": ["LlamaForSequenceClassification"]
    }
    (rewards / "config.json").write_text(json.dumps(said), encoding="utf-8")
    assert "(LlamaForSequenceClassification) is not a causal language model" in str(_refused(rewards))
    pickled = save_model(tmp_path / "pickled")
    (weights,) = pickled.glob("*.safetensors")
    weights.unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    assert "doesn't read" in str(_refused(pickled))


def test_threads_that_ask_at_once_load_the_model_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two loadings at a time mix up torch's number format, which holds for all threads, and take twice the memory."""
    begun, load = [], local_model.load_causal_model

    def slow(spec: ModelSpec) -> Any:
        begun.append(spec)
        time.sleep(0.2)
        return load(spec)

    monkeypatch.setattr(local_model, "load_causal_model", slow)
    providers = [LocalProvider(ModelSpec(str(folder)))] * 2 + [LocalProvider(ModelSpec(str(folder)))]
    asked = [Request("m", (Message("user", "x"),), 0.0, 4, numbers=("1", "2"))]
    with ThreadPoolExecutor(3) as threads:
        ((first,), *others) = threads.map(lambda provider: provider.complete(asked), providers)
    assert isinstance(first, Completion)
    assert [[first], [first]] == others
    assert len(begun) == 1
