"""What a checkpoint is, by its configuration: the kind of model, and the task that its head was trained for."""

from __future__ import annotations

from collections.abc import Iterable
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
