"""Check a model before it is built: its architecture, and whether its config.json fits its weights."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from core.errors import JudgeError

READING_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
"""Ends of the names of architectures that say something about a text and write none."""


def called(config: Any) -> str:
    """The architecture that the configuration names, else its type: what to tell a person that came."""
    named = ", ".join(str(name)[:80] for name in getattr(config, "architectures", None) or ())
    return named or str(config.model_type)[:80]


def other_head(config: Any, head: str = "") -> bool:
    """Whether the configuration names heads that only read, none of them `head` (the end of an architecture's name).

    Such a checkpoint may well lack no weight for another use (tied ones, equal names), and say nonsense there.
    """
    named = [str(name) for name in getattr(config, "architectures", None) or ()]
    right = [name for name in named if head and name.endswith(head)]
    return not right and any(name.endswith(READING_HEADS) for name in named)


def is_encoder(config: Any) -> bool:
    """Whether its states see both sides of a token, as BERT's do."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)


def is_decoder(config: Any) -> bool:
    """Whether it is of a kind that writes on and on, as Llama and Mistral do, whatever its head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    known = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not is_encoder(config)
    return known and not getattr(config, "is_encoder_decoder", False)


def require_states(name: str, config: Any) -> None:
    """JudgeError for a model whose hidden states RepEval does not read."""
    if getattr(config, "is_encoder_decoder", False):
        raise JudgeError(
            f"The model {name} has an encoder and a decoder ({config.model_type}). RepEval reads causal language "
            "models and encoders: choose one of those."
        )
    text = config.get_text_config()
    if lacking := [field for field in ("vocab_size", "num_hidden_layers", "hidden_size") if not hasattr(text, field)]:
        raise JudgeError(
            f"The model {name} reads no text ({config.model_type}: its config.json has no {lacking[0]}). RepEval "
            "reads causal language models and encoders of text: choose one of those."
        )


def require_read(name: str, model: Any, missing: Iterable[str]) -> None:
    """JudgeError for a loaded model without a head that wants pictures or sound, or lacks weights of its body.

    A pooler above the states is none: nothing here reads it.  Decoders of text that may look at pictures too are taken.
    """
    said = getattr(model, "input_modalities", "text")
    wants = {said} if isinstance(said, str) else set(said)
    if "text" not in wants or (wants != {"text"} and not is_decoder(model.config)):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) reads {' and '.join(sorted(wants))}. Choose one of text alone."
        )
    if lacking := sorted(weight for weight in missing if "pooler" not in weight):
        raise JudgeError(
            f"The model {name} ({called(model.config)}) lacks weights of its own architecture "
            f"({', '.join(lacking[:3])}): its states would be random. Its config.json may belong to another checkpoint."
        )


_MOST_BYTES = 32 << 20
"""Of a config.json, and of the header of a weight file: longer ones would fill the memory as JSON."""

_COUNTS = re.compile(r"(?:layers?|experts?|blocks?|groups?|depths?|stages?|labels)$")
"""Fields that count what a model or its config is built of, one object each."""

_FEW = {"labels": 100_000, "expert": 512, "experts": 512}
_FEW_LAYERS = 128
"""So many cost little, whatever the weights say: small files may hold several in one tensor."""
_PACKED = 8
"""A quantised file holds up to so many weights in one number."""


def require_config_fits(name: str, folder: Path | None) -> None:
    """JudgeError for a config.json that counts more layers, experts or labels than its weights can have.

    Reads config.json and the headers of the safetensors alone.  Nothing is checked of a model without a folder, or
    without such files: loading it says what is missing.
    """
    weights = None if folder is None else _weights_in(folder, name)
    if folder is None or weights is None or not (path := folder / "config.json").is_file():
        return
    if path.stat().st_size > _MOST_BYTES:
        raise _unfit(name, f"it is {path.stat().st_size:,} bytes long")
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    n_tensors, _ = weights
    for key, n in _numbers(config):
        if (counted := _COUNTS.search(key)) and n > max(n_tensors, _FEW.get(counted[0], _FEW_LAYERS)):
            raise _unfit(name, f"it says {key} = {n:,}, and the weights are {n_tensors:,} tensors")


def require_model_fits(name: str, folder: Path | None, config: Any, kind: Any) -> None:
    """JudgeError for a model that would take far more weights than its files hold.

    `kind` is the class of transformers that is going to load it.  Builds the model without memory for its weights.
    """
    import torch

    weights = None if folder is None else _weights_in(folder, name)
    if weights is None:
        return
    try:
        with torch.device("meta"):
            model = kind.from_config(config, trust_remote_code=False)
    except Exception:  # architectures that cannot be built so: loading says what is wrong, if anything is
        return
    takes, (_, held) = sum(weight.numel() for weight in model.parameters()), weights
    if takes > _PACKED * held:
        raise _unfit(name, f"it takes {takes:,} weights, and the files hold {held:,}")


def _unfit(name: str, what: str) -> JudgeError:
    return JudgeError(
        f"The config.json of the model {name} does not fit its weights: {what}. Get the folder again, whole and from "
        "a source you trust."
    )


def _weights_in(folder: Path, name: str) -> tuple[int, int] | None:
    """How many tensors and numbers the safetensors of a folder hold; None without any that can be read."""
    n_tensors = n_numbers = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                return None  # damaged: loading says so
            if length > _MOST_BYTES:
                raise _unfit(name, f"the header of {path.name} is {length:,} bytes long")
            header = file.read(length)
        try:
            tensors = [about for key, about in json.loads(header).items() if key != "__metadata__"]
            n_numbers += sum(math.prod(about["shape"]) for about in tensors)
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            return None
        n_tensors += len(tensors)
    return (n_tensors, n_numbers) if n_tensors else None


def _numbers(config: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in a config with the name of its field, however deep."""
    if isinstance(config, dict):
        for name, value in config.items():
            yield from _numbers(value, str(name))
    elif isinstance(config, list):
        for value in config:
            yield from _numbers(value, key)
    elif isinstance(config, int | float) and not isinstance(config, bool) and math.isfinite(config):
        yield key, int(config)
