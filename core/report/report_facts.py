"""The report on one calibrated judge: everything a reader needs to trust it, or not, as one frozen record.

Figures carry statistic, level, n and interval in their `Alignment`; None is undefined or not known, never 0.  Texts of
people and models stand here as they were given; whoever draws them escapes and shortens them.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING

from core.calibration.calibration_settings import CalibrationSettings
from core.records import Alignment, Origin, Scale, Usage, content_digest
from core.report.figures import Sides
from core.version import VERSION

if TYPE_CHECKING:
    from core.calibration.calibration_result import Calibration
    from core.comparison.decisions import Preferences
    from core.comparison.examination import Examination
    from core.judging.scoring_styles import Asking
    from core.project_records import CriteriaEntry, GoldenSummary, Run
    from core.projects.calibration import CalibrationRequest
    from core.projects.judge_line import JudgeLine, JudgeVersion, VersionMeasured
    from core.projects.labelling import LabelPass
    from core.projects.review import PointDecided
    from core.projects.rounds import ProposalState
    from core.projects.run_work import HeldOutAccess
    from core.report.measured import JudgeTable, Labels, MisalignedItems, OnTheScale, Raters, SourceSpread
    from core.report.systems import SystemFact
    from core.stats import Difference
    from core.stats.system_means import SystemMeans


@dataclass(frozen=True)
class PassFact:
    """A labelling pass: `n_labels` labels and `n_decided` decisions of a third person on the report's aspect.

    `raters` are those who joined or gave a label; `made_this` where its labels were frozen into this golden set.
    """

    labelling_pass: LabelPass
    raters: tuple[str, ...]
    n_labels: int
    n_decided: int
    made_this: bool


@dataclass(frozen=True)
class CriteriaFact:
    """Criteria under their `name`, and their alignment in the calibration (None where it was not measured there).

    `depth` counts steps from the oldest ancestor; `chosen` where they are part of the judge.
    """

    criteria: CriteriaEntry
    name: str
    depth: int
    chosen: bool
    calibration: Alignment | None
    held_out: Alignment | None

    @property
    def criteria_id(self) -> str:
        return self.criteria.criteria_id


@dataclass(frozen=True, slots=True)
class RoundFact:
    """A refinement round that people asked for, and how many of its proposals are in each state."""

    run_id: str
    at: datetime
    proposals: Mapping[ProposalState, int]


@dataclass(frozen=True)
class History:
    """How the criteria came about.

    `made` maps origin → number of criteria there ever were; `criteria` are those that led to a version of the judge or
    were written by hand, ancestors first; `n_more` of them do not stand here.
    """

    made: Mapping[Origin, int]
    criteria: tuple[CriteriaFact, ...]
    n_more: int
    rounds: tuple[RoundFact, ...]
    decided: tuple[PointDecided, ...]

    @property
    def chosen(self) -> tuple[CriteriaFact, ...]:
        """The criteria of the judge, ancestors first."""
        return tuple(fact for fact in self.criteria if fact.chosen)


@dataclass(frozen=True, slots=True)
class CostLine:
    """What some runs cost; `seconds` from start to end, None where not known for any of them."""

    name: str
    n_runs: int
    calls: int
    usage: Usage
    seconds: float | None


@dataclass(frozen=True)
class FusionRow:
    """One figure of a fusion by a model; `minus`, where there is any, is the whole fusion minus this one."""

    name: str
    alignment: Alignment
    minus: Difference | None = None


@dataclass(frozen=True)
class FusionFact:
    """The newest fusion by a model that rated the aspect: `title` of its run, by which `criteria`, what it is worth.

    `overall` says what the score all in all is held beside, or why it is held beside nothing (`no_overall`).
    """

    title: str
    criteria: str
    overall: str
    no_overall: bool
    rows: tuple[FusionRow, ...]


@dataclass(frozen=True)
class Reproduce:
    """How to get the same again.  `versions` are those of the program that wrote the report."""

    command: str
    judge_digest: str
    split: str
    seed: int
    prompts: tuple[str, ...]
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Everything about one calibrated judge of one aspect of one golden set.

    `added_by` brought the golden set in ("" where nobody said).  `costs` are those of this calibration, then of all
    runs on this aspect of this golden set by kind.  `means` are those of the systems: this judge's verdicts, corrected
    by the labels that it has not seen; `n_more` verdicts are on items beyond the golden set.  Of pairs of texts systems
    have `strengths` instead.  `openings` are the looks at the held-out items.  `line` are all versions of the judge;
    `seen_before` says why a gain on held-out carries no p, "" where it may.
    """

    project: str
    made_at: datetime
    golden: GoldenSummary
    added_by: str
    run: Run
    asked: CalibrationRequest
    calibration: Calibration
    labels: Labels
    raters: Raters
    passes: tuple[PassFact, ...]
    line: JudgeLine
    seen_before: str
    history: History
    judges: JudgeTable
    systems: tuple[SystemFact, ...]
    means: SystemMeans
    strengths: Preferences | None
    n_more: int
    sources: SourceSpread
    on_the_scale: OnTheScale
    examination: Examination
    misaligned: MisalignedItems
    openings: tuple[HeldOutAccess, ...]
    costs: tuple[CostLine, ...]
    reproduce: Reproduce
    fusion: FusionFact | None = None

    @property
    def search(self) -> str:
        """How the criteria were searched for and what came of it; a version that people made was not searched for."""
        words = self.asked.settings.words
        if self.run.kind == "version":
            before = words.removeprefix("Search: ")
            return f"People made this version: nothing was drafted for it. Its calibration's search: {before}"
        return words

    @property
    def aspect(self) -> str:
        return self.calibration.task.aspect

    @property
    def version(self) -> JudgeVersion | None:
        """The version of the judge that was measured, or None where none was kept."""
        return self.line.of_run(self.run.run_id)

    @property
    def measured(self) -> VersionMeasured | None:
        """The measurement of that version which this report is of, or None."""
        entries = () if self.version is None else self.version.measured
        return next((entry for entry in reversed(entries) if entry.run_id == self.run.run_id), None)

    @property
    def judge_name(self) -> str:
        """E.g. "version 3 of the judge"."""
        return "the judge" if self.version is None else f"{self.version.name} of the judge"

    @property
    def gain(self) -> Difference:
        """The judge minus the one without criteria, held-out; without p once versions were compared on these items."""
        gain = self.calibration.gain
        return replace(gain, p=None, p_reason=self.seen_before) if self.seen_before else gain

    @property
    def scale(self) -> Scale:
        """The scale of the gold labels."""
        known = self.golden.aspect(self.aspect)
        return self.calibration.task.scale if known is None else known.scale

    @property
    def held_out(self) -> Alignment:
        """The figure that counts: the judge's alignment on the items that did not choose it."""
        return self.calibration.held_out

    @property
    def n_held_out(self) -> int:
        return len(self.calibration.split.held_out)

    @property
    def sides(self) -> tuple[Sides, Sides, Sides]:
        """The judge, the single best criteria and the judge without criteria, each on both sides of the split."""
        c = self.calibration
        return (
            Sides("calibrated judge", c.calibration, c.held_out),
            Sides("best single criteria", c.best_single.calibration, c.best_single.held_out),
            Sides("judge without criteria", c.no_criteria.calibration, c.no_criteria.held_out),
        )


def reproduce(calibration: Calibration, request: CalibrationRequest) -> Reproduce:
    """The command, the seeds, the prompts, the versions and the hashes."""
    import jinja2
    import numpy
    import scipy
    import yaml

    state = dict(calibration.judge_state)
    sampling = state.get("sampling")
    prompt = str(sampling.get("prompt", "")) if isinstance(sampling, dict) else ""
    judge = {
        "state": {key: value for key, value in state.items() if key != "notice"},
        "criteria": [criteria.text for criteria in calibration.chosen],
        "isotonic": None if calibration.isotonic is None else dict(calibration.isotonic),
    }
    return Reproduce(
        command=_command(request),
        judge_digest=content_digest("judge", judge),
        split=f"by {'source' if calibration.split.kind == 'sources' else 'source and system'}",
        seed=calibration.settings.seed,
        prompts=tuple(part for part in prompt.split("+") if part),
        versions={
            "Concord": VERSION,
            "Python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "jinja2": jinja2.__version__,
            "pyyaml": yaml.__version__,
        },
    )


def _asking_options(asking: Asking) -> list[str]:
    """How the judge was asked, as options; nothing where that was the usual way."""
    words = ["--effort", asking.effort] if asking.effort else []
    words += ["--extra-body", asking.extra] if asking.extra else []
    words += ["--steps"] if asking.writes_steps else []
    if (style := asking.style) is None:
        return words
    heat = "none" if style.temperature is None else f"{style.temperature:g}"
    words += ["--form", style.form, "--samples", f"{style.samples}", "--temperature", heat]
    words += ["--weighted"] if style.weighted else []
    words += ["--persona", style.persona] if style.persona != "none" else []
    words += ["--with-references"] * style.references
    usual = replace(style, max_tokens=0).max_tokens
    return words + (["--max-tokens", f"{style.max_tokens}"] if style.max_tokens != usual else [])


def _command(request: CalibrationRequest) -> str:
    """The command that runs the same calibration on the golden set in a file."""
    chosen, usual = request.settings, CalibrationSettings()
    words = ["python", "-m", "core", "calibrate", "GOLDEN", "--aspect", request.aspect, "--judge", request.judge_spec]
    for each in fields(chosen):
        value, option = getattr(chosen, each.name), each.name.replace("_", "-")
        if value is False:
            words.append(f"--no-{option}")
        elif value != getattr(usual, each.name) and each.name != "seed":
            words += [f"--{option}", f"{value}"]
    words += ["--seed", f"{chosen.seed}"]
    words += ["--definition", request.definition] if request.definition else []
    words += _asking_options(request.asking)
    words += ["--scale", f"{request.scale}"] if request.scale is not None else []
    return shlex.join(words)
