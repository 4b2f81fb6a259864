"""Through how many source files does one thing pass on its way in, through and out?

    python tests/bench/bench_walks.py [--list] [--json] [--only WALK …]

Four walks are done for real, in a home of their own, and every file of `core` and `pages` in which a function is
called meanwhile is counted, with its lines: what somebody has to read to follow that walk.  Calls in all threads of
this process count; what a file does when it is imported does not, nor do files that give only constants and records.

================  =====================================================================================================
`judge.yaml`      the bytes of an uploaded CSV → golden set → quick calibration of the offline judge → judge.yaml
`alignment`       one criterion and a few items → prompts → replies (scripted) → readings → `core.align`
`golden set`      a labelling pass: join, save every label, look at the agreement, freeze
`heat map`        texts → hidden states of the embedded encoder → RepEval → the heat map of layer by token
================  =====================================================================================================

Runs are done in this process, as a worker does them (`core.projects.start_and_resume.execute_here`). Screens are
walked below their widgets: by the functions they call.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core.settings import Settings  # noqa: E402

PLACES = ("core", "pages")
SAMPLES = ROOT / "sample_data"
N_SCORED, N_LABELLED, N_SOURCES = 6, 4, 10
Walk = Callable[[], object]


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Counted:
    """The files of `core` and `pages`, from the root, in which a function was called."""

    files: set[str] = field(default_factory=set)
    _known: dict[CodeType, str] = field(default_factory=dict)

    @property
    def n_lines(self) -> int:
        return sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in self.files)

    def see(self, frame: FrameType, event: str, _argument: Any) -> None:
        """The profile function."""
        if event == "call":
            file = self._file_of(frame.f_code)
            if file and file not in self.files and not is_import(frame):
                self.files.add(file)

    def _file_of(self, code: CodeType) -> str:
        """From the root; "" for a file elsewhere, and for the body of a module or class, which is no function."""
        if code not in self._known:
            path = Path(code.co_filename)
            function = code.co_flags & inspect.CO_OPTIMIZED
            inside = function and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PLACES
            self._known[code] = path.relative_to(ROOT).as_posix() if inside else ""
        return self._known[code]


def is_import(frame: FrameType | None) -> bool:
    """Whether this call is made while a module is imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def counting() -> Iterator[Counted]:
    counted = Counted()
    threading.setprofile(counted.see)
    sys.setprofile(counted.see)
    try:
        yield counted
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


# ── the walks: each prepares what stands before its first step, and gives the walk itself ────────────────────────


def to_judge_file(settings: Settings) -> Walk:
    from core import projects
    from core.calibration.calibration_records import CalibrationSettings
    from core.data import build_golden, propose_mapping
    from core.projects.calibration import CalibrationRequest
    from core.projects.start_and_resume import execute_here

    store, project_id = opened(settings)
    sent = (SAMPLES / "data_to_text.csv").read_bytes()

    def walk() -> str:
        table = projects.read_upload(store, sent, "data_to_text.csv", max_mb=settings.max_upload_mb)
        golden = build_golden(table, propose_mapping(table.columns, table.rows), {}).golden
        golden_id = projects.add_golden(store, project_id, golden)
        quick = CalibrationSettings(preset="quick")
        request = CalibrationRequest(project_id, golden_id, next(iter(golden.aspects)), "offline", quick)
        run_id = projects.start_run(store, settings, request)
        assert execute_here(store, settings, run_id) == "done"
        return projects.judge_file(store, run_id)

    return walk


def to_alignment(settings: Settings) -> Walk:
    import core
    from core.data.split import task_of
    from core.judging.judge_specs import make_judge
    from core.records import Criteria

    golden = core.load_golden(SAMPLES / "summaries.jsonl")
    aspect = next(iter(golden.aspects))
    items = [item for item in golden.items if item.source_id == golden.items[0].source_id][:N_SCORED]

    def walk() -> object:
        criteria = Criteria("Reward texts in which one sentence leads to the next.", aspect)
        scores = make_judge("scripted", settings).score(task_of(golden, aspect), items, [criteria])
        by_item = dict(zip(scores.item_ids, map(float, scores.values[0]), strict=True))
        return core.align(golden, by_item, aspect, core.MeasureSettings(level="dataset"))

    return walk


def to_golden_set(settings: Settings) -> Walk:
    import core
    from core import projects
    from core.project_records import Actor
    from core.projects.labelling import LabelAspect, LabelPlan
    from core.records import Scale

    store, project_id = opened(settings)
    golden_id = projects.add_golden(store, project_id, core.load_golden(SAMPLES / "summaries.jsonl"))
    aspects = (LabelAspect("clarity", Scale(1, 5, 1), "The text is easy to follow."),)
    ann, plan = store.acting(Actor("Ann")), LabelPlan(aspects, n_raters=1)
    pass_id = projects.start_pass(ann, project_id, golden_id, "a pass", plan, limit=N_LABELLED)

    def walk() -> object:
        ann = store.acting(Actor("Ann"))
        desk = projects.join_pass(ann, project_id, pass_id)
        for k, item_id in enumerate(desk.assigned):
            projects.save_label(ann, project_id, pass_id, item_id, {"clarity": float(1 + k % 5)}, form=f"label:{k}")
            projects.get_pass(ann, project_id, pass_id)
            desk = projects.join_pass(ann, project_id, pass_id)
        assert len(desk.done) == N_LABELLED
        assert projects.pass_summary(ann, project_id, pass_id).n_touched == N_LABELLED
        return ann.goldens.load(projects.freeze_labels(ann, project_id, pass_id, name="labelled"))

    return walk


def to_heat_map(settings: Settings) -> Walk:
    import torch  # noqa: F401  as a worker that read before; under a profile the import takes long

    import core
    from core import projects
    from core.projects.method_runs import RepEvalOutcome, RepEvalRequest
    from core.projects.start_and_resume import execute_here
    from core.repeval.search import RepEvalSettings
    from core.report.figures import measure_name
    from core.report.figures.heat_map import Heat, heat_figure

    whole = core.load_golden(SAMPLES / "summaries.jsonl")
    sources = list(dict.fromkeys(item.source_id for item in whole.items))[:N_SOURCES]
    kept = [k for k, item in enumerate(whole.items) if item.source_id in sources]
    aspect, labels = next(iter(whole.aspects.items()))
    few = replace(
        whole,
        items=tuple(whole.items[k] for k in kept),
        aspects={aspect: replace(labels, values=tuple(labels.values[k] for k in kept))},
        ratings=(),
    )
    store, project_id = opened(settings)
    golden_id = projects.add_golden(store, project_id, few)
    quick = RepEvalSettings(random_vectors=50)

    def walk() -> object:
        request = RepEvalRequest(project_id, golden_id, aspect, settings=quick)
        run_id = projects.start_run(store, settings, request)
        assert execute_here(store, settings, run_id) == "done"
        outcome = projects.run_view(store, run_id).outcome
        assert isinstance(outcome, RepEvalOutcome)
        measure = outcome.result.settings.measure
        return heat_figure(Heat.of(outcome.result), measure=measure_name(measure.statistic, measure.level))

    return walk


def opened(settings: Settings) -> tuple[Any, str]:
    """A store with an empty project: (store, project id)."""
    from core import projects

    store = projects.open_store(settings)
    return store, projects.create_project(store, "walks").project_id


WALKS: dict[str, Callable[[Settings], Walk]] = {
    "judge.yaml": to_judge_file,
    "alignment": to_alignment,
    "golden set": to_golden_set,
    "heat map": to_heat_map,
}
FROM = {"judge.yaml": "upload", "alignment": "reply", "golden set": "key press", "heat map": "text"}


def walked(name: str, home: Path) -> Counted:
    """Do the walk called `name` in a new home, and count."""
    walk = WALKS[name](Settings(home=home, worker="external", worker_id="walks"))
    with counting() as counted:
        walk()
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WALKS, default=list(WALKS), metavar="WALK")
    parser.add_argument("--list", action="store_true", help="name the files too")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()

    logging.getLogger("streamlit.runtime.caching.cache_data_api").disabled = True  # a word on having no browser
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for k, name in enumerate(options.only):
            found[name] = counted = walked(name, Path(folder) / str(k))
            if not options.json:
                title = f"{FROM[name]} → {name}"
                print(f"{title:<24} {len(counted.files):>3} files of {counted.n_lines:>6,} lines", flush=True)
                if options.list:
                    print("".join(f"    {file}\n" for file in sorted(counted.files)))
    if options.json:
        print(json.dumps({name: {"files": sorted(one.files), "lines": one.n_lines} for name, one in found.items()}))


if __name__ == "__main__":
    main()
