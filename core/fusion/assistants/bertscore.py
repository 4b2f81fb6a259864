"""BERTScore (Zhang et al. 2020): each token of one text is matched with the most similar one of the other.

Computed here over the model's hidden states, and equal to the bert-score package where that one works: it shares the
definition (special tokens can be matched but carry no weight, no idf, no rescaling, best of several references).  The
package itself is not used to compute: it loads pickled weights, fails on a local tokenizer without a length limit, and
with transformers 5 no longer puts the space before the first word that RoBERTa's tokens need.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from core.errors import JudgeError, UsageError
from core.fusion.assistants.base import Assistant, AssistantScores, lacking, scores_of, texts_of
from core.fusion.assistants.checkpoints import Checkpoint, in_batches, load
from core.judging.base import OnProgress
from core.records import Item

BLOCK = 64
"""Items whose texts are encoded together: bounds the memory, and texts they share are encoded once."""


def bertscore(name: str, model: str, *, against: Literal["source", "references"] = "references") -> Assistant:
    """BERTScore F1 of the target against the best reference (or the source).

    `model` is an id or a folder, with ``@LAYER`` for the layer whose states are compared (0 the embeddings); without
    it the layer that the authors tuned for that id, and the last one where they tuned none.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        place, layer = split_layer(model)
        checkpoint = load(place, "encoder")
        return _matched(checkpoint, _layer_of(checkpoint, layer), items, against, on_progress)

    return Assistant(
        name=name,
        measures=f"BERTScore F1: tokens of the target matched by meaning with those of the {against}.",
        low=-1.0,
        high=1.0,
        needs=frozenset({against, "model"}),
        cost="one model run for each distinct text; slow without a GPU",
        scorer=scorer,
    )


def split_layer(model: str) -> tuple[str, int | None]:
    """``"roberta-large@17"`` as ("roberta-large", 17); None where no layer is named.

    Without ``@`` the layer that the authors tuned for that id, when they did.
    """
    place, at, layer = model.rpartition("@")
    if at and layer.isdecimal():
        return place, int(layer)
    if Path(model).expanduser().is_dir():
        return model, None
    from bert_score.utils import model2layers  # type: ignore[import-untyped]

    return model, model2layers.get(model)


def _layer_of(checkpoint: Checkpoint, asked: int | None) -> int:
    config = checkpoint.model.config.get_text_config()
    last = int(getattr(config, "encoder_layers", None) or config.num_hidden_layers)
    if asked is not None and asked > last:
        raise UsageError(f"{checkpoint.name} has the layers 0 to {last}; layer {asked} was asked for.")
    return last if asked is None else asked


def _matched(
    checkpoint: Checkpoint,
    layer: int,
    items: Sequence[Item],
    against: Literal["source", "references"],
    on_progress: OnProgress,
) -> AssistantScores:
    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, [against]))}
    usable = sorted(
        (i for i in range(len(items)) if i not in reasons), key=lambda i: texts_of(items[i], against)
    )  # equal references and sources side by side, so that a block shares them
    encoder = _Encoder(checkpoint, layer)
    found: dict[int, float] = {}
    for start in range(0, len(usable), BLOCK):
        block = usable[start : start + BLOCK]
        states = encoder.states(
            [items[i].target for i in block] + [text for i in block for text in texts_of(items[i], against)]
        )
        for i in block:
            target = states[items[i].target]
            found[i] = max(f1(target, states[text]) for text in texts_of(items[i], against))
        on_progress(len(reasons) + start + len(block), len(items))
    return scores_of(items, found, reasons, checkpoint.note)


def f1(target: Any, other: Any) -> float:
    """BERTScore F1 of two texts, each (unit states (tokens, dim), weights (tokens,) that sum to 1)."""
    similarities = target[0] @ other[0].T
    precision = float((similarities.max(dim=1).values * target[1]).sum())
    recall = float((similarities.max(dim=0).values * other[1]).sum())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


class _Encoder:
    """Unit hidden states of texts at one layer, with a weight for every token."""

    def __init__(self, checkpoint: Checkpoint, layer: int) -> None:
        self.checkpoint, self.layer = checkpoint, layer
        # transformers counts T5's encoder and BART's alike as `encoder`; the decoder is not needed
        whole = checkpoint.model
        self.model = whole.get_encoder() if getattr(whole.config, "is_encoder_decoder", False) else whole
        tokenizer = checkpoint.tokenizer
        self.special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
        if self.special == {None}:
            self.special = {tokenizer.eos_token_id}
        self.lead = " " if spaces_lead(tokenizer) else ""

    def states(self, texts: Sequence[str]) -> dict[str, Any]:
        """By text: (tokens, dim) unit states and (tokens,) weights that sum to 1."""
        import torch

        distinct = list(dict.fromkeys(texts))
        rows = self.checkpoint.rows([self.lead + text.strip() for text in distinct])
        kept: dict[str, Any] = {}

        def compute(positions: list[int]) -> Any:
            inputs = self.checkpoint.padded([rows[i] for i in positions])
            hidden = self.model(**inputs, output_hidden_states=True).hidden_states[self.layer]
            for one, position in zip(hidden, positions, strict=True):
                ids = rows[position]["input_ids"]
                states = torch.nn.functional.normalize(one[: len(ids)].float(), dim=-1)
                weights = torch.tensor([float(token not in self.special) for token in ids], device=states.device)
                if not weights.sum():
                    raise JudgeError(f"The tokenizer of {self.checkpoint.name} finds no token in one of the texts.")
                kept[distinct[position]] = (states, weights / weights.sum())
            return torch.zeros((len(positions), 1))

        in_batches(self.checkpoint, [len(row["input_ids"]) for row in rows], compute, lambda done: None)
        return kept


def spaces_lead(tokenizer: Any) -> bool:
    """Whether the tokenizer marks a word by the space before it and adds none at the start of a text (GPT-2, RoBERTa):
    the first word of a text would be read as the rest of another."""
    alone, led = (tokenizer.tokenize(text) for text in ("word", " word"))
    return bool(alone != led and led and led[0].startswith("Ġ"))
