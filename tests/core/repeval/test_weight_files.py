"""A folder whose config.json claims more than its weights hold is refused before anything large is built."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import JudgeError
from core.repeval.model import ModelSpec, describe, load_causal_model, load_model

ABSURD: list[tuple[str, dict[str, Any]]] = [
    ("decoder", {"num_hidden_layers": 1_000_000}),
    ("decoder", {"text_config": {"num_hidden_layers": 1_000_000}}),
    ("encoder", {"num_hidden_layers": 10**12}),
    ("shared", {"num_hidden_groups": 1_000_000}),
    ("encoder", {"num_labels": 10**9}),
    ("decoder", {"num_local_experts": 10**6}),
]
WIDE: list[tuple[str, dict[str, Any]]] = [
    ("decoder", {"hidden_size": 65_536}),
    ("decoder", {"vocab_size": 10**9}),
    ("encoder", {"max_position_embeddings": 10**9}),
]


@pytest.fixture
def claiming(model_folder: Callable[[str], Path], tmp_path: Path) -> Callable[[str, dict[str, Any]], str]:
    def folder(kind: str, claims: dict[str, Any]) -> str:
        place = tmp_path / "model"
        shutil.copytree(model_folder(kind), place)
        path = place / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | claims), encoding="utf-8")
        return str(place)

    return folder


@pytest.mark.parametrize(("kind", "claims"), ABSURD)
def test_counts_that_the_weights_cannot_have_are_refused(claiming: Any, kind: str, claims: dict[str, Any]) -> None:
    spec = ModelSpec(claiming(kind, claims))
    tracemalloc.start()
    for load in (describe, load_model, load_causal_model):
        with pytest.raises(JudgeError, match=r"config\.json of the model .* does not fit its weights: it says"):
            load(spec)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000


@pytest.mark.parametrize(("kind", "claims"), WIDE)
def test_widths_that_the_weights_do_not_have_are_refused(claiming: Any, kind: str, claims: dict[str, Any]) -> None:
    with pytest.raises(JudgeError, match=r"does not fit its weights: it takes [\d,]+ weights"):
        load_model(ModelSpec(claiming(kind, claims)))


def test_a_header_that_claims_to_be_endless_is_refused(claiming: Any) -> None:
    folder = Path(claiming("decoder", {}))
    (weights,) = folder.glob("*.safetensors")
    for length, content in ((40 << 20, b""), (10**15, b"{}")):
        with weights.open("wb") as file:
            file.write(length.to_bytes(8, "little") + content)
            file.truncate(50 << 20)  # sparse
        with pytest.raises(JudgeError):
            load_model(ModelSpec(str(folder)))
