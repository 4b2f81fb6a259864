"""`judge.yaml`: a calibrated judge as a portable file, and the judge that comes back out of it.

The file holds all that scoring needs (criteria, how their scores are joined, the judge's own state with its weights
or its model, prompt version and sampling, the map to the human scale) and all that trust needs (alignments with
statistic, level, n and interval on both sides of the split, the golden set's hash, the date, who approved the criteria
on which evidence, warnings).  Never a key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from core.calibration.report import ensemble_scores
from core.calibration.steps import Calibration
from core.errors import JudgeError
from core.jobs.views.reviews import Review
from core.judging.base import Judge, OnProgress
from core.records import Criteria, FloatArray, Item, Provenance, Scale, Scored, Task, Unscored, Verdict
from core.stats import IsotonicMap

FORMAT = "concord-judge"
VERSION = 1
NOTE = (
    "A judge calibrated with Concord. Criteria belong to the data they were calibrated on: on other data check the "
    "alignment again before trusting the scores."
)
UNAPPROVED = "Nobody has approved these criteria ({states}). Propose and approve them before others rely on this judge."


def judge_card(
    calibration: Calibration, *, created: dt.datetime | None = None, reviews: Mapping[str, Review] | None = None
) -> dict[str, Any]:
    """The content of `judge.yaml` as plain JSON types.  `created` defaults to now (UTC).

    `reviews` maps criteria id → where it stands with the people; criteria that it does not know are drafts.
    """
    c = calibration
    state = dict(c.judge_state)
    signed = approvals(c, reviews or {})
    return {
        "format": FORMAT,
        "version": VERSION,
        "created": (created or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
        "note": NOTE,
        "task": {
            "aspect": c.task.aspect,
            "kind": c.task.kind,
            "scale": {"low": c.task.scale.low, "high": c.task.scale.high, "step": c.task.scale.step},
            "definition": c.task.definition,
        },
        "judge": state,
        "join": "mean",
        "criteria": [_criteria_entry(one) for one in c.chosen],
        "approved": all_approved(signed),
        "approvals": signed,
        "isotonic": None if c.isotonic is None else dict(c.isotonic),
        "alignment": {
            "calibration": c.calibration.as_json(),
            "held_out": c.held_out.as_json(),
            "best_single": {side: one.as_json() for side, one in c.best_single.items()},
            "no_criteria": {side: one.as_json() for side, one in c.no_criteria.items()},
        },
        "golden": {"name": c.golden_name, "digest": c.golden_digest},
        "split": {
            "kind": c.split.kind,
            "seed": c.split.seed,
            "n_calibration": len(c.split.calibration),
            "n_held_out": len(c.split.held_out),
        },
        "settings": c.settings.as_json(),
        "calls": c.calls,
        "warnings": [*c.warnings, *([c.stopped_early] if c.stopped_early else []), *_unapproved(signed)],
    }


def judge_yaml(
    calibration: Calibration, *, created: dt.datetime | None = None, reviews: Mapping[str, Review] | None = None
) -> str:
    """The text of `judge.yaml`, made to be read: keys in order, no escapes, texts of several lines as they stand."""
    card = _plain(judge_card(calibration, created=created, reviews=reviews))
    return yaml.dump(card, Dumper=_ReadableDumper, sort_keys=False, allow_unicode=True, width=10_000)


def approvals(calibration: Calibration, reviews: Mapping[str, Review]) -> list[dict[str, Any]]:
    """Where each of the judge's criteria stands: state, by whom, when, why, and on which evidence (null for none)."""
    return [_approval(one.criteria_id, reviews.get(one.criteria_id)) for one in calibration.chosen]


def all_approved(signed: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are criteria and each is approved; `signed` as `approvals` gives it."""
    return bool(signed) and all(one["state"] == "approved" for one in signed)


def _approval(criteria_id: str, review: Review | None) -> dict[str, Any]:
    last = review.changes[-1] if review is not None and review.changes else None
    evidence = None if last is None else last.evidence
    return {
        "criteria": criteria_id,
        "state": "draft" if last is None else last.state,
        "by": "" if last is None else last.actor,
        "at": None if last is None else last.at.isoformat(timespec="seconds"),
        "reason": "" if last is None else last.reason,
        "evidence": None
        if evidence is None
        else {"run": evidence.run_id, "side": evidence.side, "alignment": evidence.alignment.as_json()},
    }


def _unapproved(signed: Sequence[Mapping[str, Any]]) -> list[str]:
    if all_approved(signed):
        return []
    return [
        UNAPPROVED.format(states=", ".join(f"{one['criteria']}: {one['state']}" for one in signed) or "none chosen")
    ]


class _ReadableDumper(yaml.SafeDumper):
    """Safe YAML with texts of several lines as literal blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ReadableDumper.add_representer(str, _text)


def _criteria_entry(one: Criteria) -> dict[str, Any]:
    provenance = asdict(one.provenance)
    return {
        "id": one.criteria_id,
        "text": one.text,
        "provenance": {
            k: list(v) if isinstance(v, tuple) else v for k, v in provenance.items() if v not in ("", (), 0)
        },
    }


def _plain(value: Any) -> Any:
    """Tuples to lists and numpy numbers to Python's, for a YAML file without tags."""
    match value:
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case np.generic() | np.ndarray():
            return value.tolist()
        case _:
            return value


def read_card(path: Path | str) -> dict[str, Any]:
    """The checked content of a judge file.  JudgeError tells what is wrong and what was expected."""
    try:
        card = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read ({error.strerror}). Give the path of a judge.yaml.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise JudgeError(f"{path}: is not YAML ({str(error).splitlines()[0]}). Export the judge again.") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise JudgeError(f"{path}: is no judge file; its first line should read 'format: {FORMAT}'.")
    if card.get("version") != VERSION:
        raise JudgeError(
            f"{path}: has version {card.get('version')!r}; this Concord reads version {VERSION}. "
            "Use a Concord of the version that wrote it."
        )
    missing = [part for part in ("task", "judge", "criteria", "alignment") if not card.get(part)]
    if missing:
        raise JudgeError(f"{path}: lacks {', '.join(missing)}. Export the judge again.")
    return card


@dataclass(frozen=True)
class CalibratedJudge:
    """A judge out of a file: fixed criteria, joined by their mean, mapped to the human scale.

    `Scored.value` is the judge's own score, on which the file's alignments were measured; `Scored.calibrated` is
    that score on the human scale by the isotonic map (None when the file has none).  Ranks are the same.
    """

    card: Mapping[str, Any]
    task: Task
    criteria: tuple[Criteria, ...]
    judge: Judge
    isotonic: IsotonicMap | None

    @classmethod
    def of(cls, card: Mapping[str, Any], judge: Judge, *, where: str = "judge file") -> CalibratedJudge:
        """The judge of a card whose own judge was restored by the caller.  JudgeError for a damaged card."""
        try:
            task = card["task"]
            scale = task["scale"]
            return cls(
                card=card,
                task=Task(
                    str(task["aspect"]),
                    task["kind"],
                    Scale(float(scale["low"]), float(scale["high"]), scale.get("step")),
                    str(task.get("definition") or ""),
                ),
                criteria=tuple(
                    Criteria(str(one["text"]), str(task["aspect"]), Provenance("given")) for one in card["criteria"]
                ),
                judge=judge,
                isotonic=IsotonicMap.from_json(card["isotonic"]) if card.get("isotonic") else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise JudgeError(f"{where}: a part is missing or damaged ({error!r}). Export it again.") from error

    def score(
        self, items: Sequence[Item], *, explain: bool = False, on_progress: OnProgress | None = None
    ) -> list[Verdict]:
        """One verdict per item, in order.  `explain` adds the reasons of the best of the criteria."""
        matrix = self.judge.score(self.task, items, self.criteria, on_progress=on_progress)
        unread = {one.item_id: one for rows in matrix.unscored.values() for one in rows}
        verdicts = joined_verdicts(matrix.item_ids, matrix.values, self.isotonic, unread)
        return self._explained(items, verdicts) if explain else verdicts

    def _explained(self, items: Sequence[Item], verdicts: list[Verdict]) -> list[Verdict]:
        reasons = self.judge.explain(self.task, items, self.criteria[0])
        return [
            replace(verdict, explanation=of_the_best(reason.explanation, len(self.criteria)), raw=reason.raw)
            if isinstance(verdict, Scored) and isinstance(reason, Scored)
            else verdict
            for verdict, reason in zip(verdicts, reasons, strict=True)
        ]

    def close(self) -> None:
        self.judge.close()


def of_the_best(explanation: str, n_criteria: int) -> str:
    """Says of an explanation whose it is, when the score it stands beside is a mean over several criteria."""
    return f"The best of the {n_criteria} averaged criteria: {explanation}" if n_criteria > 1 else explanation


def joined_verdicts(
    item_ids: Sequence[str], members: FloatArray, isotonic: IsotonicMap | None, unread: Mapping[str, Unscored]
) -> list[Verdict]:
    """Verdicts of the mean over `members` (n_criteria, n_items), NaN = unscored; `unread` tells why there is none."""
    joined = ensemble_scores(members)
    mapped = None if isotonic is None else isotonic.apply(joined)
    read = (~np.isnan(members)).sum(axis=0)
    return [
        unread.get(item_id, Unscored(item_id, "no verdict"))
        if np.isnan(joined[i])
        else Scored(
            item_id,
            float(joined[i]),
            n_read=int(read[i]),
            n_unread=len(members) - int(read[i]),
            calibrated=None if mapped is None else float(mapped[i]),
        )
        for i, item_id in enumerate(item_ids)
    ]
