"""RepEval: what is asked for, what a run would read, its start, and the run.  Only the worker loads a model.

::

    plan     tokenise and cut every text, count tokens; weights are not read yet
    read     texts through the model, here or on a Ray cluster; their states lie in CONCORD_HOME/states
    search   every cell and k on validation, evaluated on test
    repeat   optional: the choice over seeds, the curve over numbers of pairs

A run that is taken up again reads only texts without a file, with the model it began with; what was read, the search
and what was repeated are kept with the run.  Files that are gone by then (another host, a cleared folder) are computed
again before the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.calibration import calibration_asked
from core.projects.repeval_reading import Reading, ReadSoFar
from core.projects.runs import start_run
from core.records import GoldenSet, JudgeScores, Split
from core.repeval import (
    Extraction,
    Method,
    ModelSpec,
    PairPoint,
    RepEvalResult,
    RepEvalSettings,
    Stability,
    curve_over_pairs,
    run,
    scorer_of,
    split_three,
    stability,
)
from core.repeval.drive import FEW_LABELS, pairs_for
from core.repeval.states import EMBEDDED, lacks_other_text, template_text
from core.repeval.states.prompts import item_fields, render
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.projects.work import RunWork

T = TypeVar("T")
CURVE_SEEDS = 3
METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "mean-difference": "mean difference",
    "paper-pca": "PCA as the paper",
    "published": "PCA as the paper's code",
    "paper-svm": "SVM as the paper",
}


@dataclass(frozen=True, slots=True)
class RepEvalRequest:
    """Read the texts of a golden set with a model and project its hidden states on one aspect.

    `split_of` names a calibration of the same golden set and aspect: RepEval is then evaluated on that run's held-out
    items and learns from its calibration items; "" draws a split of its own.  `stability_seeds` repeats the whole
    choice over so many seeds (0 = not), `pairs_curve` tries several numbers of pairs (for methods that use pairs).
    """

    project_id: str
    golden_id: str
    aspect: str
    model: ModelSpec = field(default_factory=ModelSpec)
    extraction: Extraction = field(default_factory=Extraction)
    settings: RepEvalSettings = field(default_factory=RepEvalSettings)
    split_of: str = ""
    stability_seeds: int = 0
    pairs_curve: bool = False


@dataclass(frozen=True, slots=True)
class RepEvalEstimate:
    """Known before the start, without the model: distinct texts to read, their words, the three parts, the pairs.

    `n_texts` counts each text once; `n_pairs` is what the training labels give (0 for a method without pairs).
    """

    n_texts: int
    n_words: int
    n_train: int
    n_validation: int
    n_test: int
    n_pairs: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepEvalOutcome:
    """A finished run: the result, the judge it entered, and the optional looks at how much hangs on chance."""

    result: RepEvalResult
    judge_id: str = ""
    stability: Stability | None = None
    pairs_curve: tuple[PairPoint, ...] = ()


@dataclass(frozen=True)
class Curve:
    points: tuple[PairPoint, ...]


DOCUMENTS = {"states read": ReadSoFar, "search": RepEvalResult, "stability": Stability, "curve": Curve}
"""What a run keeps on its way, by name."""


@requires("viewer")
def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Texts, words, parts and pairs of a run before it starts; no model is loaded.

    Raises what the run would raise later about the request: UsageError about the template, the texts or the split,
    AspectError when the labels cannot serve, NotFoundError for unknown ids.
    """
    golden = store.goldens.load(request.golden_id)
    check_request(golden, request)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    texts = _texts(golden, request)
    notes, n_pairs = [], 0
    pairs = pairs_for(golden, request.aspect, parts, request.settings)
    if request.settings.uses_pairs:
        n_pairs = pairs.n
        if pairs.shortage():
            notes.append(pairs.shortage())
    if len(parts.validation) < FEW_LABELS:
        notes.append(
            f"Layer and token are chosen on {len(parts.validation)} validation labels only: another draw may choose "
            "others. More labelled sources make the choice steadier."
        )
    return RepEvalEstimate(
        n_texts=len(texts),
        n_words=sum(len(text.split()) for text in texts),
        n_train=len(parts.train),
        n_validation=len(parts.validation),
        n_test=len(parts.test),
        n_pairs=n_pairs,
        notes=tuple(notes),
    )


@requires("reviewer", "started RepEval")
def start_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> str:
    """Put a RepEval run in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `RepEvalOutcome`, and the score one of the project's judges.  Raises like
    `estimate_repeval`; what is wrong with the model shows in the run, because only the worker opens it.
    """
    golden = store.goldens.load(request.golden_id)
    check_request(golden, request)
    pairs_for(
        golden,
        request.aspect,
        split_three(golden, request.aspect, request.settings, split_of(store, golden, request)),
        request.settings,
    )
    model = request.model.name
    title = f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}"
    return start_run(store, settings, "repeval", request, title=title, judge_spec=model)


def check_request(golden: GoldenSet, request: RepEvalRequest) -> None:
    """UsageError or NotFoundError for what can be seen without the model and the split."""
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}.")
    if not request.model.name.strip():
        raise UsageError("No model is named; give minilm, a Hugging Face id, or a folder on the worker's machine.")
    if problem := lacks_other_text(golden.items, request.extraction):
        raise UsageError(problem)
    template_text(request.extraction.template)
    if request.stability_seeds < 0 or request.stability_seeds == 1:
        raise UsageError(f"Stability needs 2 seeds or more (0 = leave it out); {request.stability_seeds} came.")
    if request.pairs_curve and not request.settings.uses_pairs:
        raise UsageError(
            f"{request.settings.method} learns from all training labels, not from pairs: there is no curve over pairs."
        )


def split_of(store: Store, golden: GoldenSet, request: RepEvalRequest) -> Split | None:
    """The split of the calibration `request.split_of`; None for one of RepEval's own.

    UsageError when that run is of another golden set or aspect, JobError when it is no calibration.
    """
    if not request.split_of:
        return None
    asked = calibration_asked(store, request.split_of)
    if (asked.golden_id, asked.aspect) != (request.golden_id, request.aspect):
        raise UsageError(
            f"Run {request.split_of} calibrated {asked.aspect!r} of another golden set or aspect; its held-out items "
            f"are not those of {request.aspect!r} here. Choose a calibration of the same golden set and aspect."
        )
    return asked.split(golden)


def _texts(golden: GoldenSet, request: RepEvalRequest) -> set[str]:
    """The distinct texts that the model will read."""
    extraction = request.extraction
    if extraction.beside:
        return {getattr(item, part) for item in golden.items for part in (extraction.beside, "target")}
    template = template_text(extraction.template)
    return {render(template, item_fields(item, extraction.criterion)) for item in golden.items}


def reads_a_model(request: RepEvalRequest) -> bool:
    """Whether the work is a model that wants a GPU: any but the embedded encoder, or one that asks for a device."""
    device, name = request.model.device, request.model.name
    return device in ("cuda", "mps") or (name != EMBEDDED and device != "cpu")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_repeval(work: RunWork) -> RepEvalOutcome:
    """Read, search, repeat, and enter the score among the judges."""
    request, golden = work.request(RepEvalRequest), work.golden
    check_request(golden, request)
    split = split_of(work.store, golden, request)
    reading = Reading(work, request)
    settings, aspect = request.settings, request.aspect

    def beat(_done: int, _of: int) -> None:
        work.progress.advance(0, 0)  # no texts are read; only whether the run must stop

    def searched() -> RepEvalResult:
        states = reading.states(beat)
        found = run(golden, aspect, states, settings, split=split, on_progress=beat)
        return replace(found, scorer=scorer_of(golden, states, found))

    try:
        reading.read_all()
        reading.publish("search", "searching layers and tokens on the validation items")
        result = _once(work, "search", RepEvalResult, searched)
        steady, points = None, Curve(())
        if n := request.stability_seeds:
            reading.publish("repeat", f"choosing again over {n} seeds")
            steady = _once(
                *(work, "stability", Stability),
                lambda: stability(golden, aspect, reading.states(beat), settings, range(n), on_progress=beat),
            )
        if request.pairs_curve:
            reading.publish("repeat", "trying other numbers of pairs")
            seeds = range(CURVE_SEEDS)
            points = _once(
                *(work, "curve", Curve),
                lambda: Curve(
                    curve_over_pairs(golden, aspect, reading.states(beat), settings, seeds=seeds, on_progress=beat)
                ),
            )
        reading.publish("done", "done")
    finally:
        reading.close()
    judge_id = work.add_judge(judge_of(result, work.run.run_id))
    return RepEvalOutcome(result, judge_id, steady, points.points)


def _once(work: RunWork, name: str, kind: type[T], compute: Callable[[], T]) -> T:
    """What an earlier attempt kept under `name`, else what `compute` gives, which is kept."""
    found = work.kept(name, kind)
    if found is None:
        found = compute()
        work.keep(name, found)
    return found


def judge_of(result: RepEvalResult, run_id: str) -> JudgeScores:
    """The score of every item as a judge; it saw the labels of the training and validation items."""
    method, cells = METHOD_NAMES[result.settings.method], len(result.members)
    place = f"layer {result.chosen.layer}, token {result.chosen.token}"
    where = f"mean of the {cells} best cells, the best at {place}" if cells > 1 else place
    return JudgeScores(
        name=f"RepEval, {method} ({result.model})",
        kind="repeval",
        aspect=result.aspect,
        values=result.scores,
        seen=tuple(sorted((*result.parts.train, *result.parts.validation))),
        on_scale=False,
        note=f"Hidden states of {result.model} projected by {method}: {where}. No call, one pass of the model a text.",
        run_id=run_id,
        calls_per_item=0.0,
    )
