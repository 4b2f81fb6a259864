"""A fused judge as a portable file: how the parts are joined, what each is and needs; and the judge that comes back.

Parts are assistants (computed from the texts), calibrated judges (their whole judge file stands inside), fitted RepEval
scores (their directions stand inside), or numbers that have to be handed in as a column.  A part that cannot be
computed on new items counts as its mean and is named.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.data.texts import KnownTexts
from core.errors import ConcordError, JudgeError, UsageError
from core.export.documents import FORMATS, VERSION
from core.export.judge_file import checked, open_file, sealed, yaml_text
from core.export.judge_reading import read_document
from core.fusion.assistants import Assistant, fitted_repeval, make_assistant
from core.fusion.estimators import restore_estimator
from core.records import Alignment, FloatArray, GoldenSet, Item, ItemKind, Scale, Scored, Unscored, Verdict
from core.version import VERSION as CONCORD

FORMAT = FORMATS["fusion"]
NOTE = (
    "A judge fused with Concord from several parts. Its weights belong to the data they were fitted on: on other data "
    "check the alignment again before trusting the scores. A part that cannot be computed counts as its mean."
)


@dataclass(frozen=True)
class PartRecipe:
    """How a part's score comes about on other items.

    `assistant` names one of `core.fusion.assistants`; `judge` is the content of a judge file, `repeval` a fitted
    RepEval score; with none of them the score has to be handed in, as the column `column`.
    """

    name: str
    higher_is_better: bool = True
    assistant: str = ""
    judge: Mapping[str, Any] | None = None
    repeval: Mapping[str, Any] | None = None

    @cached_property
    def fitted(self) -> Assistant | None:
        """The fitted RepEval score, which holds its model from the first items on.  JudgeError for a damaged one."""
        return None if self.repeval is None else fitted_repeval(self.name, self.repeval)

    @property
    def column(self) -> str:
        """E.g. ``metric_offline_calibrated``: where the score is looked for when it cannot be computed."""
        return "metric_" + ("_".join(re.findall(r"[a-z0-9]+", self.name.lower())) or "part")

    @property
    def needs(self) -> str:
        """What scoring with it takes, in words."""
        if self.judge is not None:
            spec = str(self.judge.get("judge", {}).get("spec", "offline"))
            return f"the judge {spec}, which stands in this file"
        if self.fitted is not None and self.repeval is not None:
            beside = "".join(f", {one}" for one in sorted(self.fitted.needs - {"model"}))
            whose = f"the model {self.repeval['model']}" if "model" in self.fitted.needs else "the embedded encoder"
            return f"computed from the target{beside} with {whose}; its directions stand in this file"
        if self.assistant.startswith("metric_"):
            return f"a column {self.assistant}"
        if self.assistant:
            needs = sorted(make_assistant(self.assistant, aspect="quality").needs)
            return f"computed from the target{''.join(f', {one}' for one in needs)}"
        return f"a column {self.column} with its scores"

    def as_json(self) -> dict[str, Any]:
        """The part's entry in the file."""
        found: dict[str, Any] = {"name": self.name, "needs": self.needs, "higher_is_better": self.higher_is_better}
        if self.assistant:
            found["assistant"] = self.assistant
        if self.repeval is not None:
            found["repeval"] = dict(self.repeval)
        return found if self.judge is None else found | {"judge": dict(self.judge)}


@dataclass(frozen=True)
class FusionCard:
    """What a fused file says: the estimator's `state` (with the parts' names in order) and what was measured.

    `texts` tells the items that parts or weights were fitted on, and the other labelled ones.  `task` tells
    the kind of the items and the scale of the labels (`task_entry`); None where nobody knows.
    """

    aspect: str
    golden_name: str
    golden_digest: str
    texts: KnownTexts
    state: Mapping[str, Any]
    parts: Sequence[PartRecipe]
    fused: Alignment | Mapping[str, Any]
    told: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] | None = None


def fused_yaml(card: FusionCard, *, created: dt.datetime | None = None) -> str:
    """The text of the file.  UsageError as `fused_card`."""
    return yaml_text(fused_card(card, created=created))


def fused_card(card: FusionCard, *, created: dt.datetime | None = None) -> dict[str, Any]:
    """The content of the file, with its digest.  UsageError when a part of the state has no recipe."""
    known = {one.name: one for one in card.parts}
    lacking = [name for name in card.state["parts"] if name not in known]
    if lacking:
        raise UsageError(f"The fusion has parts without a recipe: {', '.join(lacking)}.")
    body = {
        "format": FORMAT,
        "version": VERSION,
        "concord": CONCORD,
        "digest": None,
        "created": (created or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
        "note": NOTE,
        "aspect": card.aspect,
        "task": None if card.task is None else dict(card.task),
        "fusion": dict(card.state),
        "parts": [known[name].as_json() for name in card.state["parts"]],
        "alignment": card.fused.as_json() if isinstance(card.fused, Alignment) else dict(card.fused),
        "told": dict(card.told),
        "golden": {"name": card.golden_name, "digest": card.golden_digest},
        "warnings": [str(one) for one in card.told.get("notes", ())],
        "texts": card.texts.as_json(),
    }
    return sealed(body)


def task_entry(aspect: str, kind: ItemKind, labels: Scale) -> dict[str, Any]:
    """What `FusionCard.task` holds of items of `kind` with labels on the scale `labels`."""
    scale = {"low": labels.low, "high": labels.high, "step": labels.step}
    return {"aspect": aspect, "kind": kind, "scale": scale, "definition": ""}


def is_fused_file(path: Path | str) -> bool:
    """Whether the file says that it is a fused judge; False for what cannot be read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            first = file.readline(200).strip()
        known = {f"format: {name}": name == FORMAT for name in FORMATS.values()}
        return known[first] if first in known else read_document(path).get("format") == FORMAT
    except (OSError, UnicodeDecodeError, JudgeError):
        return False


class Restored(Protocol):
    """A judge out of a judge file, whoever restored it."""

    def score(self, items: Sequence[Item]) -> list[Verdict]: ...

    def close(self) -> None: ...


OpenJudge = Callable[[Mapping[str, Any]], Restored]
"""Restores the calibrated judge of a judge file's content."""


@dataclass(frozen=True)
class FusedScores:
    """Verdicts in item order; `missing` says of each part that gave nothing why; `used` are the others."""

    verdicts: tuple[Verdict, ...]
    missing: Mapping[str, str]
    used: tuple[str, ...]


@dataclass(frozen=True)
class FusedJudge:
    """A fused judge out of a file."""

    card: Mapping[str, Any]
    parts: tuple[PartRecipe, ...]
    edited: bool = False

    @property
    def aspect(self) -> str:
        return str(self.card["aspect"])

    def score(self, golden: GoldenSet, open_judge: OpenJudge) -> FusedScores:
        """Score the items of `golden` (labels are not needed; its metric columns serve parts that are handed in).

        UsageError when no part can be computed; an item on which none could is Unscored.
        """
        rows, missing = [], {}
        for part in self.parts:
            values = _score(part, golden, self.aspect, open_judge)
            if isinstance(values, str):
                missing[part.name] = values
                values = np.full(len(golden.items), np.nan)
            rows.append(values if part.higher_is_better else -values)
        if len(missing) == len(self.parts):
            why = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
            raise UsageError(f"No part of the fusion can be computed on these items. {why}")
        matrix = np.array(rows)
        fused = restore_estimator(self.card["fusion"]).score(matrix)
        verdicts = tuple(
            Unscored(item.item_id, "missing input", "No part of the fusion has a score.")
            if np.isnan(value)
            else Scored(item.item_id, float(value))
            for item, value in zip(golden.items, fused, strict=True)
        )
        used = tuple(one.name for one in self.parts if one.name not in missing)
        return FusedScores(verdicts, missing, used)


def read_fused(path: Path | str, *, accept_edited: bool = False) -> FusedJudge:
    """The fused judge of a file.  JudgeError when it cannot be read or is damaged, or was changed after its export."""
    file = open_file(path, "fusion", accept_edited=accept_edited)
    return fused_judge(file.card, str(path), edited=file.edited)


def fused_judge(card: Mapping[str, Any], where: str, *, edited: bool = False) -> FusedJudge:
    """The fused judge of a card in the present version.  JudgeError, naming `where` it is, for a damaged one."""
    try:
        parts = tuple(_recipe(one) for one in card["parts"])
        if [part.name for part in parts] != list(card["fusion"]["parts"]):
            raise ValueError("parts and weights differ")
        if restore_estimator(card["fusion"]).weights_.size != len(parts):
            raise ValueError("there are not as many weights as parts")
        str(card["aspect"])
    except (KeyError, TypeError, ValueError, UsageError, JudgeError) as error:
        raise JudgeError(f"{where}: a part is missing or damaged ({error}). Export the fusion again.") from error
    return FusedJudge(card, parts, edited)


def _recipe(entry: Mapping[str, Any]) -> PartRecipe:
    """A part as the file states it, checked; KeyError, TypeError, ValueError or JudgeError for what is damaged."""
    name, judge = entry["name"], entry.get("judge")
    if not isinstance(name, str) or not (judge is None or isinstance(judge, dict)):
        raise ValueError("a part has no name, or a judge that is no object")
    judge = None if judge is None else checked(judge, where=f"the part {name}")
    assistant = str(entry.get("assistant") or "")
    part = PartRecipe(name, bool(entry["higher_is_better"]), assistant, judge, entry.get("repeval"))
    _ = part.fitted  # a damaged one is refused here, before anything is scored
    return part


def _score(part: PartRecipe, golden: GoldenSet, aspect: str, open_judge: OpenJudge) -> FloatArray | str:
    """(n_items,) scores as they come, or why there are none."""
    if part.judge is not None:
        try:
            judge = open_judge(part.judge)
            try:
                verdicts = judge.score(golden.items)
            finally:
                judge.close()
        except ConcordError as error:
            return str(error)
        return np.array([one.value if isinstance(one, Scored) else np.nan for one in verdicts])
    try:
        assistant = part.fitted or make_assistant(part.assistant or part.column, golden=golden, aspect=aspect)
    except UsageError as error:
        return f"it needs {part.needs}. {error}"
    if reason := assistant.missing(golden):
        return reason
    try:
        return assistant.score(golden.items).values
    except Exception as error:  # one part must not end the others; its reason is told
        return str(error) if isinstance(error, ConcordError) else f"it failed: {type(error).__name__}: {error}"
