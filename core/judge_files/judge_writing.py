"""Write the files of a calibration: `judge.yaml`, `candidates.jsonl`, `verdicts.jsonl`, `summary.json`.

`judge.yaml` contains everything that scoring needs, and the measured alignments, approvals and warnings. It never
contains an API key: text that looks like a key is removed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from core.calibration.calibration_records import Calibration
from core.comparison import ceiling as measured_ceiling
from core.errors import AspectError, hide
from core.files import json_lines, write_json, write_text
from core.judge_files.documents import FORMATS, VERSION, Kind, digest_of, document_of, with_leaves
from core.judge_files.loaded import joined_verdicts, with_reasons
from core.judging.judge_protocol import ITEM_PARTS, Judge, parts_read
from core.judging.parse import PARSER
from core.records import VERSION as CONCORD
from core.records import Alignment, GoldenSet, Scale, Unscored, Verdict, content_digest
from core.stats import MeasureSettings
from core.verdicts import Verdicts, verdict_row
from core.wording import VERSION_ORIGINS, percent

if TYPE_CHECKING:
    from core.projects.judge_line import JudgeVersion, VersionDecided

NOTE = (
    "This judge was calibrated with Concord. Its criteria fit the data that they were calibrated on. Before you "
    "trust scores on other data, measure the agreement again."
)
UNAPPROVED = "No one has approved this judge{which}. Before others rely on this judge, ask a reviewer to approve it."
LEFT_OUT = "Concord removed text that looked like a key or a password from this file: {places}."
SKEWED = 0.75
"""Share of equal labels that triggers a warning, because the alignment then depends on few items."""
FEW_NUMBERS = 4
"""Maximum length of a list of numbers that is written on one line."""
NUMBERS = ("direction", "support")
"""Fields with numbers in base64, which could be mistaken for a key."""


def card_arguments(golden: GoldenSet, calibration: Calibration) -> dict[str, Any]:
    """Return the arguments of `judge_card` that depend on the golden set: ``ceiling``, ``needs`` and ``warnings``.

    ``ceiling`` is the average alignment of a rater with the mean of the other raters, with the statistic and level of
    the held-out alignment. Without individual ratings there is no ``ceiling``.
    """
    held_out, aspect, state = calibration.held_out, calibration.task.aspect, calibration.judge_state
    read = parts_read(state["spec"], references=bool(state.get("sampling", {}).get("references", False)))
    parts = ("target", *(part for part in ITEM_PARTS if part in read))
    needs = [part for part in parts if golden.items and all(getattr(item, part) for item in golden.items)]
    known: dict[str, Any] = {"needs": needs, "warnings": label_warnings(golden, aspect)}
    with suppress(AspectError):
        people = measured_ceiling(golden, aspect, MeasureSettings(held_out.statistic, held_out.level))
        known["ceiling"] = people.leave_one_out
    return known


def judge_card(
    calibration: Calibration,
    *,
    version: JudgeVersion | None = None,
    ceiling: Alignment | None = None,
    held_out_opened: int | None = None,
    needs: Sequence[str] | None = None,
    people: Mapping[str, int] | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the content of `judge.yaml` as JSON types, with its digest.

    Args:
        version: The project's version of this judge, with approvals; None means that nobody approved the judge.
        ceiling: Average alignment of a rater with the mean of the other raters.
        held_out_opened: How many times users viewed held-out results.
        needs: Parts that every item had, such as "source".
        people: Counts of raters, edits, decisions and so on, by name.
        warnings: Additional warnings for users of the judge.
    """
    c, state, split = calibration, calibration.judge_state, calibration.split
    task = task_entry(c.task.aspect, c.task.kind, c.task.scale, c.task.definition)
    task |= {"levels": [asdict(level) for level in c.task.levels]} if c.task.levels else {}
    body: dict[str, Any] = {
        "task": task | ({} if needs is None else {"needs": needs}),
        "judge": state,
        "parser": None if state.get("spec") == "offline" else PARSER,
        "join": "mean",
        "criteria": [
            {
                "id": criteria.criteria_id,
                "text": criteria.text,
                "provenance": {k: v for k, v in asdict(criteria.provenance).items() if v not in ("", (), 0)},
            }
            | ({"weights": list(criteria.weights)} if criteria.weights else {})
            for criteria in c.chosen
        ],
        "approved": version is not None and version.in_force,
        "approvals": [{"criteria": criteria.criteria_id} | _approval(version) for criteria in c.chosen],
        **({} if version is None else {"judge_version": _version_entry(version)}),
        "isotonic": c.isotonic,
        **({} if c.intervals is None else {"intervals": c.intervals}),
        "alignment": _alignments(c),
        "ceiling": None if ceiling is None else ceiling.as_json(),
        "golden": golden_entry(c.golden_name, c.golden_digest, c.golden_columns),
        "split": {
            "kind": split.kind,
            "seed": split.seed,
            "n_calibration": len(split.calibration),
            "n_held_out": len(split.held_out),
        },
        "held_out_opened": held_out_opened,
        "people": people or {},
        "settings": c.settings.as_json(),
        "calls": c.calls,
        "work": c.work.as_json(),
        "warnings": [*c.warnings, *warnings, *c.work.left_out, *_unapproved(version)],
        "texts": c.texts.as_json(),
    }
    return written(body, "judge", NOTE)


def judge_yaml(calibration: Calibration, **known: Any) -> str:
    """Return the text of `judge.yaml`; `known` holds keyword arguments of `judge_card`."""
    return yaml_text(judge_card(calibration, **known))


def task_entry(aspect: str, kind: str, scale: Scale, definition: str = "") -> dict[str, Any]:
    ends = {"low": scale.low, "high": scale.high, "step": scale.step}
    return {"aspect": aspect, "kind": kind, "scale": ends, "definition": definition}


def golden_entry(name: str, digest: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a golden set in a judge file. `columns` is `GoldenSet.columns`."""
    return {"name": name, "digest": digest} | ({"columns": columns} if columns else {})


def _alignments(calibration: Calibration) -> dict[str, Any]:
    """Return the alignments of the judge, its best criteria and the baseline. The gain is a paired difference."""
    c, held_out = calibration, calibration.held_out
    return {
        "calibration": c.calibration.as_json(),
        "held_out": held_out.as_json(),
        "best_single": c.best_single.as_json(),
        "no_criteria": c.no_criteria.as_json(),
        "gain": {"statistic": held_out.statistic, "level": held_out.level} | c.gain.as_json(),
    }


def label_warnings(golden: GoldenSet, aspect: str) -> list[str]:
    """Return warnings if labels are skewed, or if there are fewer than two raters."""
    labels = golden.labels(aspect)
    values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
    if not values.size:
        return []
    warnings, share = [], counts.max() / counts.sum()
    if share >= SKEWED and values.size > 1:
        warnings.append(
            f"The labels are skewed: {percent(share)} of {counts.sum()} labels are {values[counts.argmax()]:g}. The "
            "agreement depends on the few other labels."
        )
    if len({rating.rater_id for rating in golden.ratings if rating.aspect == aspect}) < 2:
        warnings.append("Agreement between raters is unknown, because no item in the golden set has several raters.")
    return warnings


# ── who approved it ──────────────────────────────────────────────────────────────────────────────────────────────


def _approval(version: JudgeVersion | None) -> dict[str, Any]:
    """Return the last decision on the version, once per criteria text."""
    if version is None or not version.decisions:
        state = "draft" if version is None else version.state
        return {"state": state, "by": "", "at": None, "reason": "", "evidence": None}
    last = _decision_entry(version, version.approval or version.decisions[-1])
    return last | {"state": "approved" if version.in_force else version.state}


def _decision_entry(version: JudgeVersion, decision: VersionDecided) -> dict[str, Any]:
    measured, shown = version.evidence_of(decision), None
    if measured is not None:
        side, alignment = measured.evidence
        shown = {"run": measured.run_id, "side": side, "alignment": alignment.as_json()}
    return {
        "by": decision.actor,
        "at": decision.at.isoformat(timespec="seconds"),
        "state": decision.state,
        "reason": decision.reason,
        "evidence": shown,
    }


def _version_entry(version: JudgeVersion) -> dict[str, Any]:
    made, suffix = version.made, content_digest("aspect", version.aspect).split(":")[1][:8]
    return {
        "id": f"v{version.number}-{suffix}",
        "number": version.number,
        "state": version.state,
        "parent": f"v{made.parent}-{suffix}" if made.parent else None,
        "author": made.actor,
        "note": made.note or VERSION_ORIGINS[made.origin],
        "approvals": [_decision_entry(version, decision) for decision in version.decisions],
    }


def _unapproved(version: JudgeVersion | None) -> list[str]:
    """Return a warning if nobody has approved the judge."""
    if version is not None and version.in_force:
        return []
    return [UNAPPROVED.format(which=f" (version {version.number} is {version.state})" if version else "")]


# ── the files of a calibration ───────────────────────────────────────────────────────────────────────────────────


def summary(calibration: Calibration, out: str, seconds: float) -> dict[str, Any]:
    """Return the content of `summary.json`, which `calibrate --json` prints."""
    c = calibration
    return {
        "aspect": c.task.aspect,
        "judge": c.judge_state.get("spec", ""),
        "notice": c.judge_state.get("notice", ""),
        "candidates": len(c.candidates) - 1,
        "rounds": c.work.rounds_done,
        "work": c.work.as_json(),
        "calls": c.calls,
        "usage": asdict(c.usage),
        "cost": c.usage.cost,
        "seconds": round(seconds, 3),
        **_alignments(c),
        "optimism": c.optimism,
        "held_out_items": list(c.scores.item_ids[len(c.split.calibration) :]),
        "criteria": [criteria.text for criteria in c.chosen],
        "golden": {"name": c.golden_name, "digest": c.golden_digest},
        "settings": c.settings.as_json(),
        "unscored": len(c.scores.unscored.get("final", ())),
        "problems": dict(c.problems),
        "warnings": list(c.warnings),
        "stopped_early": c.stopped_early or None,
        "out": out,
    }


def final_verdicts(calibration: Calibration, golden: GoldenSet, judge: Judge) -> Verdicts:
    """Return the final judge's verdicts with reasons: first calibration items, then held-out items.

    The scores are from `calibration`. The reasons come from `judge`, which uses its cache if it is remote. Each item's
    reason comes from the best criteria for which the judge's reply can be read.
    """
    scores, n_calibration = calibration.scores, len(calibration.split.calibration)
    missing = {unscored.item_id: unscored for unscored in scores.unscored.get("final", ())}
    members, turned = scores.values[1:], None if scores.turned is None else scores.turned[1:]
    joined = joined_verdicts(scores.item_ids, members, calibration.score_map, missing, turned)
    verdicts = Verdicts(replace(verdict, calibration_item=k < n_calibration) for k, verdict in enumerate(joined))
    by_id, read, explained = {item.item_id: item for item in golden.items}, ~np.isnan(members), dict[str, Verdict]()
    for k, criteria in enumerate(calibration.chosen):
        first_read = np.flatnonzero(read[k] & ~read[:k].any(axis=0))
        if items := [by_id[scores.item_ids[i]] for i in first_read]:
            answer = judge.score(calibration.task, items, [criteria], explain=True)
            explained |= {verdict.item_id: verdict for verdict in answer.explained}
    reasons = [explained.get(item_id, Unscored(item_id, "no verdict")) for item_id in scores.item_ids]
    return with_reasons(verdicts, reasons, members)


def write_run(
    folder: Path,
    calibration: Calibration,
    verdicts: Iterable[Verdict],
    seconds: float,
    *,
    extra: Mapping[str, Any] | None = None,
    **known: Any,
) -> dict[str, Any]:
    """Write the four files of a calibration to `folder`, which is created if missing; return the summary.

    `verdicts` come from `final_verdicts`. `extra` is added to the summary. `known` holds keyword arguments of
    `judge_card`.
    """
    n_calibration = len(calibration.split.calibration)
    rows = (
        verdict_row(verdict) | {"side": "calibration" if i < n_calibration else "held-out"}
        for i, verdict in enumerate(verdicts)
    )
    candidates = (
        {
            "rank": rank,
            "criteria_id": one.criteria.criteria_id,
            "status": one.status,
            "text": one.criteria.text,
            "alignment": one.alignment and one.alignment.as_json(),
            "inner_gain": one.inner_gain,
            "calls": one.calls,
            **asdict(one.criteria.provenance),
        }
        for rank, one in enumerate(calibration.candidates, start=1)
    )
    body = summary(calibration, str(folder), seconds) | dict(extra or {})
    write_text(folder / "judge.yaml", judge_yaml(calibration, **known))
    write_text(folder / "candidates.jsonl", json_lines(candidates))
    write_text(folder / "verdicts.jsonl", json_lines(rows))
    write_json(folder / "summary.json", body, indent=2)
    return body


# ── any file ─────────────────────────────────────────────────────────────────────────────────────────────────────


def written(body: Mapping[str, Any], kind: Kind, note: str = "", created: dt.datetime | None = None) -> dict[str, Any]:
    """Build and validate the content of a judge file: the common fields, `body` and the digest.

    If `created` is None, the current time is used. Raises JudgeError if the content is invalid.
    """
    card = sealed(
        {
            "format": FORMATS[kind],
            "version": VERSION,
            "concord": CONCORD,
            "digest": None,
            "created": (created or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
            "note": note,
            **body,
        }
    )
    document_of(card, kind, "Concord can't write this judge")
    return card


def sealed(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return `card` as JSON types, without secrets and with its digest.

    If secrets were removed, the card gets a warning that says where they were.
    """
    clean, places = without_secrets(with_leaves(card, _plain))
    if places:
        clean["warnings"] = [*clean.get("warnings", []), LEFT_OUT.format(places=", ".join(places))]
    return dict(clean) | {"digest": digest_of(clean)}


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """Copy `value` (JSON types), and remove text that looks like a key or password.

    Returns the copy, and the path of each text that was changed.
    """
    places: list[str] = []

    def clean(leaf: Any, path: str) -> Any:
        if not isinstance(leaf, str) or path.rpartition(".")[2] in NUMBERS or (cleaned := hide(leaf)) == leaf:
            return leaf
        places.append(path or "the file")
        return cleaned

    return with_leaves(value, clean), places


def _plain(value: Any, _: str) -> Any:
    """Convert NumPy numbers to Python numbers, so that YAML needs no tags, and replace lone surrogates."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def yaml_text(card: Mapping[str, Any]) -> str:
    """Return a card as YAML text that `read_card` can read."""
    plain = with_leaves(card, _plain)
    return yaml.dump(plain, Dumper=_ReadableDumper, sort_keys=False, allow_unicode=True, width=10_000)


class _ReadableDumper(yaml.SafeDumper):
    """A safe YAML dumper that writes multi-line texts as literal blocks and short number lists on one line."""

    def readable_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _LINE_ENDS.search(text) else "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def readable_list(self, values: list[Any]) -> yaml.SequenceNode:
        few = 1 < len(values) <= FEW_NUMBERS and all(isinstance(value, int | float | None) for value in values)
        return self.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=few or None)


_LINE_ENDS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\ufeff]")
"""Characters that YAML may read as line breaks, so texts with one of them are escaped."""

_ReadableDumper.add_representer(str, _ReadableDumper.readable_text)
_ReadableDumper.add_representer(list, _ReadableDumper.readable_list)
