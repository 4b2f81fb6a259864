"""The files of a calibration on disk: `judge.yaml`, `candidates.jsonl`, `verdicts.jsonl`, `summary.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from core.calibration.calibration_result import Calibration
from core.files import json_lines, write_json, write_text
from core.judge_files.calibrated_judge import joined_verdicts, with_reasons
from core.judge_files.judge_writing import Known, gain_entry, judge_yaml
from core.judge_files.verdict_files import verdict_row
from core.judging.judge_protocol import Judge
from core.records import GoldenSet, Unscored, Verdict
from core.verdicts import Verdicts


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
        "calibration": c.calibration.as_json(),
        "held_out": c.held_out.as_json(),
        "optimism": c.optimism,
        "best_single": c.best_single.as_json(),
        "no_criteria": c.no_criteria.as_json(),
        "gain": gain_entry(c),
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


def final_verdicts(calibration: Calibration, golden: GoldenSet, judge: Judge | None = None) -> Verdicts:
    """Return the final judge's verdicts on calibration, then held-out items, as the result holds them.

    `judge` adds the reasons of the best criteria that could be read (a remote one reads its cache): only what it
    answered is asked again.
    """
    scores, n_calibration = calibration.scores, len(calibration.split.calibration)
    missing = {unscored.item_id: unscored for unscored in scores.unscored.get("final", ())}
    members, turned = scores.values[1:], None if scores.turned is None else scores.turned[1:]
    joined = joined_verdicts(scores.item_ids, members, calibration.score_map, missing, turned)
    verdicts = Verdicts(replace(verdict, calibration_item=k < n_calibration) for k, verdict in enumerate(joined))
    if judge is None:
        return verdicts
    by_id, read, explained = {item.item_id: item for item in golden.items}, ~np.isnan(members), dict[str, Verdict]()
    for k, criteria in enumerate(calibration.chosen):  # each item under the first of the criteria that scored it
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
    told: Mapping[str, Any] | None = None,
    **known: Unpack[Known],
) -> dict[str, Any]:
    """Write the four files into `folder` (made if missing) and return the summary.

    `verdicts` are the final judge's on calibration, then held-out items; the side is written next to each.  `told` is
    added to the summary.  `known` is what the judge file says besides the calibration.
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
    body = summary(calibration, str(folder), seconds) | dict(told or {})
    write_text(folder / "judge.yaml", judge_yaml(calibration, **known))
    write_text(folder / "candidates.jsonl", json_lines(candidates))
    write_text(folder / "verdicts.jsonl", json_lines(rows))
    write_json(folder / "summary.json", body, indent=2)
    return body
