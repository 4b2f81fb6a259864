"""A judge card as the adapters need it, read with defaults, and what can be told about it in lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from core.errors import JudgeError, UsageError
from core.judging.gate import endpoint_of_file
from core.judging.render import neutral, plain
from core.judging.sampling import Sampling
from core.judging.spec import parse_spec
from core.records import ItemKind, Scale, Task
from core.stats import IsotonicMap

NO_MODEL = ("offline", "scripted")
"""Kinds of judges whose scores come from no model that another tool could ask."""

_PARTS: Mapping[str, tuple[str, ...]] = {
    "source_target": ("target", "source"),
    "data_text": ("target", "source"),
    "source_context_target": ("target", "source", "context"),
}


@dataclass(frozen=True)
class JudgeFacts:
    """What a card says: the task, the texts of the criteria (best first), the model and how it is asked.

    `model` is "" where the judge is no language model that another tool can ask; `sampling` then has the defaults.
    `key_goes` says whether OPENAI_API_KEY may be sent to `base_url`, which comes out of the file and may be anybody's.
    `parts` are the parts of an item that every item of the calibration had.
    """

    card: Mapping[str, Any]
    task: Task
    criteria: tuple[str, ...]
    spec: str
    model: str
    base_url: str
    key_goes: bool
    sampling: Sampling
    isotonic: IsotonicMap | None
    parts: tuple[str, ...]

    @property
    def aspect(self) -> str:
        """The aspect's name as Concord's prompts show it: one line, no control characters."""
        return " ".join(plain(self.task.aspect).split())

    @property
    def is_llm(self) -> bool:
        """Whether the judge's scores come from a model that another tool can ask too."""
        return bool(self.model)

    @property
    def told(self) -> list[str]:
        """Task, judge, alignment, approval and warnings, a line each."""
        return [
            *_about(self),
            *_version(self.card),
            *_alignments(self.card),
            *_approval(self.card),
            *_warnings(self.card),
        ]


def facts_of(card: Mapping[str, Any]) -> JudgeFacts:
    """The facts of a checked card.  JudgeError for a fused judge and for a part that is missing or damaged."""
    if card.get("format") == "concord-fusion":
        raise JudgeError(
            "This is a fused judge: its parts and weights have no place in another tool's file. Score with "
            "'python -m core score --judge-file', or adapt the judge.yaml of one of its parts."
        )
    try:
        task, judge = card["task"], card["judge"]
        scale = task["scale"]
        kind: ItemKind = task["kind"]
        if kind not in get_args(ItemKind):
            raise ValueError(f"items of kind {kind!r}")
        if not plain(str(task["aspect"])).strip():
            raise ValueError("the aspect has no name")
        spec = str(judge.get("spec") or "offline")
        model, base_url, key_goes = _model(spec, judge)
        return JudgeFacts(
            card=card,
            task=Task(
                str(task["aspect"]),
                kind,
                Scale(float(scale["low"]), float(scale["high"]), scale.get("step")),
                str(task.get("definition") or ""),
            ),
            criteria=tuple(neutral(str(one["text"])) for one in card["criteria"]) or ("",),
            spec=spec,
            model=model,
            base_url=base_url,
            key_goes=key_goes,
            sampling=Sampling(**judge["sampling"]) if judge.get("sampling") else Sampling(),
            isotonic=IsotonicMap.from_json(card["isotonic"]) if card.get("isotonic") else None,
            parts=tuple(task.get("needs") or _PARTS.get(kind, ("target",))),
        )
    except UsageError as error:
        raise JudgeError(f"The judge of this file cannot be asked: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JudgeError(f"The judge file lacks a part or it is damaged ({error!r}). Export it again.") from error


def _model(spec: str, judge: Mapping[str, Any]) -> tuple[str, str, bool]:
    """(model, base URL, whether the key may go there) that a tool can ask.

    Both empty where there is no model, the URL also where it is OpenAI's own.
    """
    parsed = parse_spec(spec)
    if parsed.kind == "openai":
        return parsed.model, *endpoint_of_file(parsed.base_url)
    return "" if parsed.kind in NO_MODEL else str(judge.get("model") or ""), "", True


def _about(facts: JudgeFacts) -> list[str]:
    card, golden = facts.card, facts.card.get("golden") or {}
    return [
        f"Aspect: {facts.task.aspect}, on the scale {facts.task.scale}; criteria: {len(facts.criteria)}.",
        f"Judge: {facts.spec}. Golden set: {golden.get('name') or 'unnamed'} ({golden.get('digest') or 'no hash'}).",
        f"Judge file: written {card.get('created') or 'at an unknown time'}, {card.get('digest') or 'without digest'}.",
    ]


def _version(card: Mapping[str, Any]) -> list[str]:
    """Which version of the judge this is, and who decided what on it."""
    told = card.get("judge_version")
    if not told:
        return []
    decided = "".join(f"; {one['state']} by {one['by']}, {one['at']}" for one in told.get("approvals") or [])
    return [f"Version {told['number']} of this judge ({told['id']}), {told['state']}{decided}."]


def alignment_words(told: Mapping[str, Any] | None) -> str:
    """E.g. "spearman 0.612 at sample level, 95 % interval 0.541 to 0.683, n = 120"; "unknown" for None."""
    if not told:
        return "unknown"
    value, interval = told.get("value"), told.get("interval")
    words = f"{told.get('statistic')} {'—' if value is None else f'{value:.3f}'} at {told.get('level')} level"
    words += f", 95 % interval {interval[0]:.3f} to {interval[1]:.3f}" if interval else ", no interval"
    unscored = f", {told['n_unscored']} unscored" if told.get("n_unscored") else ""
    return f"{words}, n = {told.get('n')}{unscored}"


def _alignments(card: Mapping[str, Any]) -> list[str]:
    told = card.get("alignment") or {}
    lines = [
        f"Alignment with people on held-out items: {alignment_words(told.get('held_out'))}.",
        f"The same judge without criteria there: {alignment_words((told.get('no_criteria') or {}).get('held_out'))}.",
        f"On the calibration items (which chose the criteria): {alignment_words(told.get('calibration'))}.",
    ]
    if card.get("ceiling"):
        lines.append(
            f"One person against the mean of the others (ceiling): {alignment_words(card['ceiling'])}. It is a harder "
            "target than the mean of all, so the judge's figure above must not be held against it."
        )
    return lines


def _approval(card: Mapping[str, Any]) -> list[str]:
    signed = card.get("approvals") or []
    states = ", ".join(_state(one) for one in signed)
    if card.get("approved"):
        return [f"Approved by people ({states})."]
    return [f"NOT approved by people ({states or 'nobody was asked'})."]


def _state(signed: Mapping[str, Any]) -> str:
    by = f" by {signed['by']}" if signed.get("by") else ""
    return f"{signed.get('criteria')}: {signed.get('state')}{by}"


def _warnings(card: Mapping[str, Any]) -> list[str]:
    return [f"Warning: {one}" for one in card.get("warnings") or [] if not str(one).startswith("Nobody has approved")]
