"""Extraction against transformers' own hidden states, for every kind of model, padding side and batch size."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import JudgeError, StoreError
from core.records import GoldenSet, Item
from core.repeval import Extraction, ModelSpec, describe, extract
from core.repeval.model import load_model, load_tokenizer, token_batches, token_ids
from core.repeval.states import BATCH_TOKENS, finite_cells, prompts_of, read_batch, varying_cells

TEXTS = (
    "a",
    "The cat sat on the mat.",
    "One more text, and this one is a good deal longer than the others so that padding matters.",
    "Short one.",
    "Numbers 1 2 3 and a comma, then an end.",
    "b b b b b b b b",
)
TOKENS = ("first", "mean", "-3", "-1")
KINDS = ("decoder", "learnt", "encoder", "shared")
Folder = Callable[[str], Path]


def golden_of(items: list[Item]) -> GoldenSet:
    return GoldenSet("texts", "source_target", tuple(items), {})


def items_of(texts: tuple[str, ...] = TEXTS) -> list[Item]:
    return [Item(f"i{k}", text, source=f"source {k % 2}") for k, text in enumerate(texts)]


def oracle(folder: Path, texts: tuple[str, ...]) -> np.ndarray:
    """Each text alone, without padding, all hidden states of transformers, the tokens picked in numpy."""
    import torch

    loaded, tokenizer = load_model(ModelSpec(str(folder))), load_tokenizer(ModelSpec(str(folder)))
    found = []
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            hidden = loaded.model(input_ids=inputs["input_ids"], output_hidden_states=True).hidden_states
        layers = np.stack([layer[0].numpy() for layer in hidden])  # (layers, tokens, dim)
        length = layers.shape[1]
        picks = [layers[:, 0], layers.mean(axis=1), layers[:, max(length - 3, 0)], layers[:, -1]]
        found.append(np.stack(picks, axis=1))
    return np.stack(found)


def distance(values: np.ndarray, expected: np.ndarray) -> float:
    """The largest gap of a state relative to its length."""
    gaps = np.linalg.norm(values - expected, axis=-1)
    return float((gaps / np.linalg.norm(expected, axis=-1)).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_states_of_each_text_alone(model_folder: Folder, kind: str) -> None:
    spec = ModelSpec(str(model_folder(kind)))
    loaded, expected = load_model(spec), oracle(model_folder(kind), TEXTS)
    ids = token_ids(load_tokenizer(spec), TEXTS)
    layers = range(loaded.facts.n_layers)
    whole = read_batch(loaded, layers, TOKENS, ids)
    assert whole.dtype == np.float16  # 11 bits: a state is off by 2^-11 of itself at most
    assert whole.shape == expected.shape
    assert distance(whole, expected) < 2**-11
    pairs = np.concatenate([read_batch(loaded, layers, TOKENS, ids[k : k + 2]) for k in range(0, len(ids), 2)])
    assert distance(pairs, expected) < 2**-11


class _KilledError(Exception):
    """Ends a reading in its midst."""


def test_cache_is_resumed_and_depends_on_weights_and_cells(
    model_folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, golden = ModelSpec(str(model_folder("decoder"))), golden_of(items_of())
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 40)
    small, told = Extraction(), list[tuple[int, int]]()

    def killed_after_a_batch(done: int, total: int) -> None:
        told.append((done, total))
        if done:
            raise _KilledError

    with pytest.raises(_KilledError):
        extract(golden, spec, small, tmp_path, killed_after_a_batch)
    n_first = told[-1][0]
    assert told == [(0, len(TEXTS)), (n_first, len(TEXTS))]
    states = extract(golden, spec, small, tmp_path)
    assert (states.prompts, states.cached) == (len(TEXTS), n_first) != (n_first, n_first)
    fresh = extract(golden, spec, small)
    assert np.array_equal(states.values, fresh.values)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("weights were loaded although everything is cached")

    with monkeypatch.context() as patch:
        patch.setattr("core.repeval.states.load_model", never)
        cached = extract(golden, spec, small, tmp_path)
    assert np.array_equal(cached.values, fresh.values)
    assert cached.cached == cached.prompts
    assert extract(golden, spec, replace(small, tokens=("-1",)), tmp_path).cached == 0
    assert extract(golden, replace(spec, name=str(model_folder("learnt"))), small, tmp_path).cached == 0


def test_damaged_file_is_named(model_folder: Folder, tmp_path: Path) -> None:
    spec = ModelSpec(str(model_folder("encoder")))
    extract(golden_of(items_of()), spec, cache_dir=tmp_path)
    victim = sorted(tmp_path.rglob("*.npy"))[0]
    victim.write_bytes(victim.read_bytes()[:50])
    with pytest.raises(StoreError, match=r"Delete the file"):
        extract(golden_of(items_of()), spec, cache_dir=tmp_path)


def test_compared_states_are_the_text_and_its_distances(model_folder: Folder, tmp_path: Path) -> None:
    folder = model_folder("encoder")
    spec, dialogue, fact = ModelSpec(str(folder)), "a dialogue", "a fact"
    items = [Item("a", TEXTS[1], source=dialogue, context=fact), Item("b", TEXTS[2], source=dialogue, context=fact)]
    cells = ("mean", "source:mean", "context:-1")
    states = extract(golden_of(items), spec, Extraction(texts="compared", tokens=cells))
    v, u, w = oracle(folder, TEXTS[1:3]), oracle(folder, (dialogue, dialogue)), oracle(folder, (fact, fact))
    mean, last = TOKENS.index("mean"), TOKENS.index("-1")
    expected = np.stack([v[:, :, mean], abs(u - v)[:, :, mean], abs(w - v)[:, :, last]], axis=2)
    assert states.token_names == cells
    assert np.allclose(states.values.astype(np.float64), expected, atol=0.02, rtol=0.01)

    own = extract(golden_of(items), spec, Extraction(), tmp_path)
    whole = extract(golden_of(items), spec, Extraction(texts="compared"), tmp_path)
    assert whole.token_names[:6] == own.token_names
    assert whole.token_names[6:9] == ("source:first", "source:mean", "source:-1")
    assert np.array_equal(whole.values[:, :, :6], own.values)
    assert whole.cached == 2  # the texts themselves had been read


@pytest.mark.parametrize("kind", ["t5", "vit"])
def test_a_model_that_is_no_decoder_or_encoder_of_text_is_named(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(JudgeError, match=f"is a {kind}. RepEval reads only causal language models"):
        describe(ModelSpec(str(tmp_path)))


def test_too_long_texts_lose_the_beginning_of_the_source_first(model_folder: Folder) -> None:
    tokenizer = load_tokenizer(ModelSpec(str(model_folder("decoder"))))
    words = " ".join(f"w{k}" for k in range(60))
    items = [Item("a", "the hypothesis stays", source=words), Item("b", "short", source="src")]
    prompts, _, cut = prompts_of(tokenizer, items, Extraction(template="{source} || {hypothesis}"), 64)
    texts = [tokenizer.decode(ids).removeprefix("<s>") for ids in prompts]
    assert all(len(ids) <= 64 for ids in prompts)
    assert texts[0].endswith("w59 || the hypothesis stays")
    assert "w0 " not in texts[0]
    assert texts[1] == "src || short"
    assert cut.tolist() == [True, False]
    alone, _, _ = prompts_of(tokenizer, [Item("c", words)], Extraction(), 64)
    assert tokenizer.decode(alone[0]).endswith("w59")


def test_memory_running_out_halves_the_batch_and_goes_on(model_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    spec, golden = ModelSpec(str(model_folder("decoder"))), golden_of(items_of())
    expected, sizes = extract(golden, spec), list[int]()

    def read(*about: Any) -> Any:
        rows = about[-1]
        sizes.append(len(rows) * max(map(len, rows)))
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate a lot")
        return read_batch(*about)

    monkeypatch.setattr("core.repeval.states.read_batch", read)
    states = extract(golden, spec)
    assert max(sizes[1:]) < sizes[0]  # what follows is not tried with the batch that was too large
    gap = np.abs(states.values.astype(np.float64) - expected.values.astype(np.float64)).max()
    assert gap < 0.01

    monkeypatch.setattr("core.repeval.states.read_batch", lambda *_: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(JudgeError, match="on one text"):
        extract(golden, spec)


def test_pickled_weights_are_refused(model_folder: Folder, tmp_path: Path) -> None:
    import torch

    folder = tmp_path / "pickled"
    shutil.copytree(model_folder("encoder"), folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(JudgeError, match="no safetensors weights"):
        load_model(ModelSpec(str(folder)))
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(JudgeError, match=r"could not be read: .*`minilm` comes with Concord"):
        load_model(ModelSpec(str(folder)))


def test_remote_code_is_refused_and_not_run(model_folder: Folder, tmp_path: Path) -> None:
    folder = tmp_path / "foreign"
    shutil.copytree(model_folder("encoder"), folder)
    marker = tmp_path / "ran"
    (folder / "foreign.py").write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "foreign", "auto_map": {"AutoConfig": "foreign.Config", "AutoModel": "foreign.Model"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(JudgeError, match="which Concord never runs"):
        describe(ModelSpec(str(folder)))
    assert not marker.exists()


def test_embedded_encoder_needs_no_network() -> None:
    facts = describe(ModelSpec())
    assert (facts.n_layers, facts.dim, facts.encoder, facts.max_tokens) == (7, 384, True, 512)
    states = extract(golden_of(items_of(TEXTS[:2])), extraction=Extraction(tokens=("mean",), layers=(6,)))
    assert states.values.shape == (2, 1, 1, 384)
    assert states.summary()["model"] == "minilm"


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 120))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    assert all(len(batch) == 1 or len(batch) * top <= budget for batch, top in zip(batches, longest, strict=True))


def test_usable_cells_are_finite_and_vary() -> None:
    values = np.random.default_rng(0).normal(size=(70, 2, 3, 4)).astype(np.float16)
    values[:, 0, 1] = values[0, 0, 1]  # constant in each dimension
    values[69, 1, 0, 2] = np.nan
    values[68, 1, 2, 0] = -np.inf
    values[:, 1, 1] = 0.0
    values[69, 1, 1, 3] = 6e-8  # one subnormal number is enough to vary
    assert (finite_cells(values) & varying_cells(values)).tolist() == [[True, False, True], [False, True, False]]
