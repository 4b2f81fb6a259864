"""Where judge and people part and what was decided; what it all cost; how to get the same again."""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import jinja2
import numpy as np
import scipy
import yaml

from core.calibration.refine import standardised_gap
from core.calibration.settings import CalibrationSettings
from core.calibration.steps import Calibration
from core.kept import Run, Side
from core.projects.reporting.basis import Basis
from core.projects.triage import list_triage
from core.projects.views.reports import CostLine, Costs, Example, Misaligned, Reproduce
from core.records import FloatArray, Usage, content_digest
from core.review.meetings import Decision, Meeting
from core.review.triage import Triage
from core.store.codec import unpack
from core.store.results import RESULT
from core.version import VERSION

_MOST_LOOKED_AT, _MOST_OTHERS = 20, 5
_NO_OPTION = {
    "inner_share": "inner share",
    "misaligned": "misaligned items shown",
    "min_gap": "least gap",
    "draft_temperature": "draft temperature",
    "refine_temperature": "refine temperature",
    "resamples": "resamples",
}
"""Settings of a calibration for which the command line has no option."""
_OPTIONS = {
    "preset": "--preset",
    "revisit": "--revisit",
    "rounds": "--rounds",
    "keep": "--keep",
    "ensemble": "--ensemble",
    "budget": "--budget",
    "statistic": "--statistic",
    "level": "--level",
    "split": "--split",
    "calibration_share": "--calibration-share",
}


def misaligned(basis: Basis, meetings: Sequence[Meeting]) -> Misaligned:
    """Calibration items far apart, and every item that people looked at, as the final judge scores them."""
    at = basis.calibration_at
    gaps = np.full(len(basis.golden.items), np.nan)
    gaps[at] = standardised_gap(basis.values[at], basis.labels[at])
    least = basis.calibration.settings.min_gap
    triage = list_triage(basis.store, basis.project_id, basis.golden.digest, basis.aspect)
    known = {item_id: k for k, item_id in enumerate(basis.golden.item_ids)}
    looked_at = [known[item_id] for item_id in triage if item_id in known]
    others = [int(k) for k in at if abs(gaps[k]) >= least and basis.golden.item_ids[k] not in triage]
    chosen = [*_furthest(gaps, looked_at)[:_MOST_LOOKED_AT], *_furthest(gaps, others)[:_MOST_OTHERS]]
    decided = {
        point.item.item_id: point.decision
        for meeting in meetings
        for point in meeting.points
        if point.item.item_id and point.decision is not None
    }
    return Misaligned(
        n_scored=int((~np.isnan(gaps)).sum()),
        n_apart=int((np.abs(gaps) >= least).sum()),
        least=least,
        by_verdict=dict(Counter(triage[basis.golden.item_ids[k]].verdict for k in looked_at).most_common()),
        examples=tuple(_example(basis, k, gaps, triage, decided) for k in chosen),
    )


def _furthest(gaps: FloatArray, positions: Iterable[int]) -> list[int]:
    """Largest gap first, those without one last."""
    return sorted(positions, key=lambda k: (bool(np.isnan(gaps[k])), -abs(float(gaps[k])), k))


def _example(
    basis: Basis, k: int, gaps: FloatArray, triage: dict[str, Triage], decided: dict[str, Decision]
) -> Example:
    item, found = basis.golden.items[k], triage.get(basis.golden.item_ids[k])
    made = decided.get(item.item_id)
    side: Side = "held-out" if k in basis.calibration.split.held_out else "calibration"
    return Example(
        item_id=item.item_id,
        source_id=item.source_id,
        system_id=item.system_id,
        side=side,
        source=item.source,
        target=item.target,
        label=_known(basis.labels[k]),
        score=_known(basis.values[k]),
        gap=_known(gaps[k]),
        verdict=None if found is None else found.verdict,
        note="" if found is None else found.note,
        by="" if found is None else found.actor,
        decided="" if made is None else made.verdict,
        decided_why="" if made is None else made.reason,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# ── costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def costs(basis: Basis) -> Costs:
    """Of this calibration, and of all runs on this aspect of this golden set by kind."""
    runs = [
        _settled(basis, run)
        for run in basis.store.runs.all(basis.project_id)
        if (run.golden_id, run.aspect) == (basis.golden.digest, basis.aspect)
    ]
    kinds = dict.fromkeys(run.kind for run in reversed(runs))
    return Costs(
        this=_cost([run for run in runs if run.run_id == basis.run.run_id]),
        every=tuple(_cost([run for run in runs if run.kind == kind]) for kind in kinds),
    )


def _settled(basis: Basis, run: Run) -> Run:
    """A calibration's result knows exactly what it used; the row knows what was last shown as progress."""
    kept = basis.store.results.document(run.run_id, RESULT) if run.kind == "calibration" else None
    if kept is None:
        return run
    found = basis.calibration if run.run_id == basis.run.run_id else unpack(Calibration, kept)
    return replace(run, calls=found.calls, usage=found.usage)


def _cost(runs: Sequence[Run]) -> CostLine:
    """Of runs of one kind."""
    took = [
        (run.finished_at - run.started_at).total_seconds()
        for run in runs
        if run.finished_at is not None and run.started_at is not None
    ]
    total = Usage()
    for run in runs:
        total = total + run.usage
    return CostLine(runs[0].kind, len(runs), sum(run.calls for run in runs), total, sum(took) if took else None)


# ── how to get the same again ────────────────────────────────────────────────────────────────────────────────


def reproduce(basis: Basis) -> Reproduce:
    """The command, the seeds, the prompts, the versions and the hashes."""
    c = basis.calibration
    state = dict(c.judge_state)
    sampling = state.get("sampling")
    prompt = str(sampling.get("prompt", "")) if isinstance(sampling, dict) else ""
    return Reproduce(
        command=command(basis),
        golden_digest=c.golden_digest,
        judge_digest=content_digest(
            "judge",
            {
                "state": {key: value for key, value in state.items() if key != "notice"},
                "criteria": [one.text for one in c.chosen],
                "isotonic": None if c.isotonic is None else dict(c.isotonic),
            },
        ),
        split=f"by {'source' if c.split.kind == 'sources' else 'source and system'}",
        seed=c.settings.seed,
        prompts=tuple(one for one in prompt.split("+") if one),
        versions={
            "Concord": VERSION,
            "Python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "jinja2": jinja2.__version__,
            "pyyaml": yaml.__version__,
        },
    )


def command(basis: Basis) -> str:
    """The command that runs the same calibration on the golden set in a file; settings without an option named."""
    asked, chosen, usual = basis.asked, basis.calibration.settings, CalibrationSettings()
    words = ["python", "-m", "core", "calibrate", "GOLDEN", "--aspect", basis.aspect, "--judge", asked.judge_spec]
    for name, option in _OPTIONS.items():
        value = getattr(chosen, name)
        if value != getattr(usual, name):
            words += [option, f"{value}"]
    words += ["--seed", f"{chosen.seed}"]
    words += ["--definition", asked.definition] if asked.definition else []
    words += ["--scale", f"{asked.scale}"] if asked.scale is not None else []
    other = [f"{said} {getattr(chosen, name):g}" for name, said in _NO_OPTION.items() if _differs(chosen, usual, name)]
    return shlex.join(words) + (f"  # and, set on the screen: {', '.join(other)}" if other else "")


def _differs(chosen: CalibrationSettings, usual: CalibrationSettings, name: str) -> bool:
    return bool(getattr(chosen, name) != getattr(usual, name))
