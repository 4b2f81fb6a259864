"""One pass: what prompts share is read once, and the numbers are those of separate passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import JudgeError
from core.providers.local_model import NextTokens, number_tokens, weigh
from core.repeval.model import ModelSpec, load_causal_model
from tests.core.local_models import save_model, tokenizer

ITEMS = ("The council met on Monday. " * 5, "A dog. " * 20, "Rain fell on the hills and in the valley. " * 4)
CRITERIA = ("Be brief.", "Nothing may be invented here.", "x", "Every sentence has a verb and a subject.")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_causal_model(ModelSpec(str(save_model(tmp_path_factory.mktemp("m")))))


def _rows() -> list[list[int]]:
    texts = [f"{item}\nRule: {rule}\nNumber:" for item in ITEMS for rule in CRITERIA]
    return [list(row) for row in tokenizer()(texts)["input_ids"]]


def _read(reader: NextTokens, rows: list[list[int]], columns: tuple[int, ...]) -> Any:
    values = np.full((len(rows), len(columns)), np.nan)
    for positions, batch in reader.read(rows, columns):
        assert np.isnan(values[positions]).all()  # every prompt once
        values[positions] = batch
    return values


@pytest.mark.parametrize("budget", [1, 300, 2000, 100_000])
def test_shared_beginnings_give_the_numbers_of_separate_passes(loaded: Any, budget: int) -> None:
    import torch

    model, rows = loaded[0], _rows()
    columns = tuple(range(0, 200, 3))
    reader = NextTokens(model, budget)
    values = _read(reader, rows, columns)
    assert reader.shares
    with torch.inference_mode():
        for row, got in zip(rows, values, strict=True):
            right = model.model(torch.tensor([row])).logits[0, -1].softmax(-1)[list(columns)].numpy()
            assert got == pytest.approx(right, abs=1e-5)


def test_memory_that_runs_out_halves_the_batches(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, rows = NextTokens(loaded[0], 4000), _rows()
    right = _read(NextTokens(loaded[0], 4000), rows, (40, 41))
    logits = reader.logits

    def tight(ids: Any, *rest: Any, **options: Any) -> Any:
        if ids.numel() > 300:
            raise RuntimeError("CUDA out of memory")
        return logits(ids, *rest, **options)

    monkeypatch.setattr(reader, "logits", tight)
    assert _read(reader, rows, (40, 41)) == pytest.approx(right, abs=1e-6)
    monkeypatch.setattr(reader, "logits", lambda ids, *_, **__: tight(ids.repeat(100, 100)))
    with pytest.raises(JudgeError, match="single prompt"):
        _read(reader, rows, (40,))


def test_numbers_of_several_tokens_add_up_to_what_the_model_would_write(loaded: Any) -> None:
    import torch

    model, words = loaded
    numbers = number_tokens(words, [str(n) for n in range(11)], "tiny")
    assert len(numbers.nodes) == 2  # the beginning, and "1"
    row = _rows()[0]
    got = [shares for _, shares in weigh(NextTokens(model), [row], numbers)]
    one, zero = words.convert_tokens_to_ids(["1", "0"])
    with torch.inference_mode():
        first = model.model(torch.tensor([row])).logits[0, -1].softmax(-1)
        then = model.model(torch.tensor([[*row, one]])).logits[0, -1].softmax(-1)
    assert got[0][1] == pytest.approx(float(first[one] * (1 - then[zero])), abs=1e-6)
    assert got[0][10] == pytest.approx(float(first[one] * then[zero]), abs=1e-6)
    assert got[0][0] == pytest.approx(float(first[zero]), abs=1e-6)
