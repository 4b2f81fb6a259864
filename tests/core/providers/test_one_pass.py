"""One pass: what prompts share is read once, and the numbers are those of separate passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import JudgeError
from core.providers import local_model
from core.providers.local_model import next_tokens, together
from core.repeval.model import LoadedModel, ModelSpec, load_causal_model
from tests.core.local_models import save_model, tokenizer

ITEMS = ("The council met on Monday. " * 5, "A dog. " * 20, "Rain fell on the hills and in the valley. " * 4)
CRITERIA = ("Be brief.", "Nothing may be invented here.", "x", "Every sentence has a verb and a subject.")
COLUMNS = range(0, 200, 3)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_causal_model(ModelSpec(str(save_model(tmp_path_factory.mktemp("m")))))[0]


def _rows() -> list[list[int]]:
    texts = [f"{item}\nRule: {rule}\nNumber:" for item in ITEMS for rule in CRITERIA]
    return [list(row) for row in tokenizer()(texts)["input_ids"]]


def _read(loaded: LoadedModel, budget: int) -> Any:
    rows = _rows()
    values = np.full((len(rows), len(COLUMNS)), np.nan)
    for positions, batch in next_tokens(loaded, rows, COLUMNS, budget):
        assert np.isnan(values[positions]).all()  # every prompt once
        values[positions] = batch
    return values


@pytest.mark.parametrize("budget", [1, 300, 2000, 100_000])
def test_shared_beginnings_give_the_numbers_of_separate_passes(loaded: LoadedModel, budget: int) -> None:
    import torch

    assert [len(members) for members, _ in together(_rows())] == [4, 4, 4]
    with torch.inference_mode():
        for row, got in zip(_rows(), _read(loaded, budget), strict=True):
            right = loaded.model(torch.tensor([row])).logits[0, -1].softmax(-1)[list(COLUMNS)].numpy()
            assert got == pytest.approx(right, abs=1e-5)


def test_memory_that_runs_out_halves_the_batches(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    right, compute = _read(loaded, 4000), local_model.probabilities

    def tight(model: LoadedModel, rows: list[list[int]], *rest: Any) -> Any:
        if sum(map(len, rows)) > most:
            raise RuntimeError("CUDA out of memory")
        return compute(model, rows, *rest)

    monkeypatch.setattr(local_model, "probabilities", tight)
    most = 400
    assert _read(loaded, 4000) == pytest.approx(right, abs=1e-6)
    most = 10
    with pytest.raises(JudgeError, match="one text"):
        _read(loaded, 4000)
