"""Calibrate LLM judges to human raters from Python, without the app.

::

    import core
    golden = core.load_golden("golden.jsonl")
    result = core.calibrate(golden, "coherence", judge="offline")
    result.held_out                       # Alignment: statistic, level, value, n, interval
    result.save("out/coherence")          # judge.yaml and the other files, as `python -m core calibrate --out`
    result.judge.score(golden.items)      # the same judge, without its file
    judge = core.load_judge("judge.yaml")
    judge.score(items)                    # Verdicts (Scored | Unscored); report judge.marks with them
    core.align(golden, "verdicts.jsonl", "coherence")
    core.compare(golden, "verdicts.jsonl", "others.jsonl", "coherence")
    core.ceiling(golden, "coherence")     # how well the raters agree with each other
    core.compare_with_raters(golden, "verdicts.jsonl", "coherence")   # the judge compared with a rater, paired
    core.annotator_test(golden, "verdicts.jsonl", "coherence")  # could it replace a rater?
    core.examine(golden, "verdicts.jsonl", "coherence")   # where does it fail, and what are its biases?
    core.negative_controls(golden, "coherence", judge.score, positions)  # does it prefer spoiled texts?
    core.estimate_means(golden, "verdicts.jsonl", "coherence")  # mean of each system, corrected by labels
    core.choose_threshold(golden, "verdicts.jsonl", "coherence", yes_from=4)    # the score from which the answer is yes
    core.preferences(pairs, "preference", "verdicts.jsonl")     # pairs: strengths of systems, agreement
    core.styles(golden, "coherence", "openai:m", core.StylesSettings((core.Style("score_only"),))).view.cells
    core.check_connection("openai:m@http://127.0.0.1:8000/v1")  # does the model answer?
    core.ablate(result)                   # what each part of the judge adds
    core.fit_repeval(golden, "coherence").score(items)    # text quality from a model's hidden states
    core.fuse(golden, "coherence", ["offline", "overlap"], out="out/fused")   # combine judges and metrics
    core.plan_labels(200, n_sources=50, n_raters=2).interval    # the interval to expect from that many labels
    core.recheck("judge.yaml", newer, "coherence")        # is it still aligned on newer labels?
    core.repeat("judge.yaml", golden)             # how much do scores change when it is asked again?
    core.switch(lambda spec: core.load_judge("judge.yaml", judge=spec), golden, ["openai:other"])  # another model
    core.monitor("traffic.jsonl", "judge.yaml", "out/monitor")  # has the quality of newer texts changed?
    core.open_project("Summaries", create=True)           # a stored project: golden sets, runs, judges, report
    core.write_report("My project", "coherence", "out/report")   # the report on the judge of a stored project

`core/README.md` describes the folders.  Importing this module is fast: names are loaded on first use.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.calibration.ablate import Ablation
    from core.calibration.calibrated import CalibratedRun, ablate, calibrate, estimate
    from core.calibration.calibration_records import Calibration, CalibrationSettings
    from core.comparison.controls import negative_controls
    from core.comparison.corrected_means import EstimatedMeans, estimate_means
    from core.comparison.examination import examine
    from core.comparison.leaderboard import ceiling
    from core.comparison.measures import (
        Preferences,
        align,
        align_all,
        annotator_test,
        choose_threshold,
        compare,
        compare_with_raters,
        preferences,
    )
    from core.comparison.monitoring import Monitored, MonitorSettings, monitor
    from core.comparison.recheck import RecheckSettings, recheck
    from core.comparison.steadiness import RepeatSettings, Steadiness, repeat
    from core.comparison.style_grid import StylesSettings, styles
    from core.comparison.switching import switch
    from core.data import load_golden, load_items
    from core.errors import (
        AspectError,
        AuthError,
        BadReplyError,
        ConcordError,
        ConsentError,
        CriteriaError,
        EndpointDownError,
        GoldenError,
        JudgeError,
        ModelNotFoundError,
        ProviderError,
        RateLimitError,
        UsageError,
    )
    from core.fusion.fused_run import FusedRun, FusionSettings, fuse
    from core.judge_files.loaded import load_judge
    from core.judging.judge_specs import check_connection
    from core.judging.scoring_styles import Asking, Style
    from core.projects.project import Project, WrittenReport, open_project, write_report
    from core.records import Alignment, Criteria, GoldenSet, Interval, Item, Scored, ScoreMatrix, Unscored, Verdict
    from core.repeval import Extraction, ModelSpec, RepEvalSettings
    from core.repeval.fitted import FittedRepEval, fit_repeval
    from core.stats import MeasureSettings
    from core.stats.label_planning import LabelPlanning, plan_labels
    from core.verdicts import Verdicts


__all__ = [
    "Ablation",
    "Alignment",
    "Asking",
    "AspectError",
    "AuthError",
    "BadReplyError",
    "CalibratedRun",
    "Calibration",
    "CalibrationSettings",
    "ConcordError",
    "ConsentError",
    "Criteria",
    "CriteriaError",
    "EndpointDownError",
    "EstimatedMeans",
    "Extraction",
    "FittedRepEval",
    "FusedRun",
    "FusionSettings",
    "GoldenError",
    "GoldenSet",
    "Interval",
    "Item",
    "JudgeError",
    "LabelPlanning",
    "MeasureSettings",
    "ModelNotFoundError",
    "ModelSpec",
    "MonitorSettings",
    "Monitored",
    "Preferences",
    "Project",
    "ProviderError",
    "RateLimitError",
    "RecheckSettings",
    "RepEvalSettings",
    "RepeatSettings",
    "ScoreMatrix",
    "Scored",
    "Steadiness",
    "Style",
    "StylesSettings",
    "Unscored",
    "UsageError",
    "Verdict",
    "Verdicts",
    "WrittenReport",
    "ablate",
    "align",
    "align_all",
    "annotator_test",
    "calibrate",
    "ceiling",
    "check_connection",
    "choose_threshold",
    "compare",
    "compare_with_raters",
    "estimate",
    "estimate_means",
    "examine",
    "fit_repeval",
    "fuse",
    "load_golden",
    "load_items",
    "load_judge",
    "monitor",
    "negative_controls",
    "open_project",
    "plan_labels",
    "preferences",
    "recheck",
    "repeat",
    "styles",
    "switch",
    "write_report",
]


def _homes() -> dict[str, str]:
    """Map public names to modules, read from the imports above, which only type checkers execute."""
    imports = (
        node for node in ast.walk(ast.parse(Path(__file__).read_text("utf-8"))) if isinstance(node, ast.ImportFrom)
    )
    return {name.name: node.module or "" for node in imports for name in node.names if name.name in __all__}


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    """List the public names too, so that they can be completed before first use."""
    return sorted({*globals(), *__all__})
