"""Runs other than calibrations: styles, RepEval, ablations, rechecks, repeats, damaged texts, other models.

In code, scores of damaged texts are called *controls*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core.calibration.ablate import Ablation
from core.calibration.calibration_records import Calibration, Estimate
from core.comparison.controls import Control, items_of, negative_controls, spoiled_pairs
from core.comparison.recheck import Recheck, newer_items, recheck
from core.comparison.steadiness import RepeatSettings, Steadiness, items_to_repeat, repeat
from core.comparison.style_grid import StylesEstimate, StylesSettings, StylesView, estimate_of_styles
from core.comparison.style_grid import styles as compared_styles
from core.comparison.switching import MOST, TriedModel, switch
from core.errors import JobError, NotFoundError, UsageError
from core.judging.judge_protocol import NO_TEXT, CallEstimate
from core.judging.judge_specs import NAMED, language_model
from core.progress import Stage
from core.project_records import WITH_RESULT, Run, RunKind
from core.projects.calibration import calibration_asked, split_of_run, with_model
from core.projects.judge_line import compared_before, judge_line
from core.projects.project_list import require_aspect
from core.projects.start_and_resume import (
    KINDS,
    MODELS_TRIED,
    Kind,
    RunWork,
    list_held_out_accesses,
    load_calibration,
    load_scores,
    require_judge,
    require_made_here,
)
from core.records import GoldenSet, Item, JudgeScores, Split, Unscored, text_length
from core.repeval import Method, RepEvalResult, RepEvalSettings, split_three
from core.repeval.fitted import fit_repeval
from core.repeval.projection import Training
from core.repeval.search import RepEvalSplit, blank_items, training_of
from core.repeval.states import template_text, texts_to_read
from core.settings import Settings
from core.store.database import unpack
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store
from core.verdicts import Verdicts
from core.wording import judge_words

if TYPE_CHECKING:
    from core.judge_files.loaded import CalibratedJudge
    from core.providers.completions import ReplyStore


@dataclass(frozen=True, slots=True)
class StylesRequest:
    """A request to score items on an aspect with the judge `judge_spec` in several styles, without criteria."""

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str
    settings: StylesSettings


def estimate_styles(store: Store, settings: Settings, request: StylesRequest) -> StylesEstimate:
    """Estimate calls, tokens and price of a run that compares styles: in total, and for each style.

    Raises:
        UsageError: The judge is not a language model.
        AuthError: The judge needs a key, and no key is set.
        AspectError: There are too few labels.
        NotFoundError: An id is unknown.
    """
    golden = store.goldens.load(request.golden_id)
    with closing(language_model(request.judge_spec, settings)) as judge:
        return estimate_of_styles(golden, request.aspect, judge, request.settings)


def _check_styles(store: Store, settings: Settings, request: StylesRequest) -> tuple[StylesRequest, str, str]:
    if request.judge_spec == "offline":
        raise UsageError(
            "The offline judge is not a language model, so it has no styles to compare. Choose "
            "openai:MODEL@BASE_URL, hf:ID_OR_PATH, or scripted (the demo's stand-in)."
        )
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    what = "styles" if request.settings.n_items is None else "pilot of styles"
    about = f"{len(request.settings.styles)} × {request.aspect} · {golden.name}"
    return request, f"{what}: {about} · {judge_words(request.judge_spec)}", request.judge_spec


def run_styles(work: RunWork) -> StylesView:
    """Score items in all styles, and add each finished style as a judge."""
    request = work.request(StylesRequest)

    def enter(judge: JudgeScores, replies: Mapping[str, tuple[str, ...]]) -> None:
        work.add_judge(replace(judge, run_id=work.run.run_id), replies)

    with closing(language_model(request.judge_spec, work.settings, work.replies, gate=NAMED)) as judge:
        return compared_styles(
            work.golden, request.aspect, judge, request.settings, enter=enter, progress=work.progress
        ).view


def styles_so_far(store: Store, run_id: str) -> StylesView | None:
    """Return the results so far of a run that compares styles; None if there are none.

    Raises NotFoundError for an unknown run id.
    """
    store.runs.get(run_id)
    return store.results.read(run_id, RESULT, StylesView) or store.results.read(run_id, SNAPSHOT, StylesView)


# ── RepEval ────────────────────────────────────────────────────────────────────────────────────────────────────


METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "paper-pca": "PCA as in the paper",
    "paper-svm": "SVM as in the paper",
}


@dataclass(frozen=True, slots=True)
class RepEvalRequest:
    """Request to fit RepEval: read hidden states of the texts, and project them onto an aspect.

    Attributes:
        split_of: Id of a calibration on the same golden set and aspect, whose split is used. "" for a new split.
    """

    project_id: str
    golden_id: str
    aspect: str
    settings: RepEvalSettings = field(default_factory=RepEvalSettings)
    split_of: str = ""


@dataclass(frozen=True, slots=True)
class RepEvalEstimate:
    """The size of a RepEval run: distinct texts, words, labels in each part of the split, and pairs (0 if not used)."""

    n_texts: int
    n_words: int
    n_train: int
    n_validation: int
    n_test: int
    n_pairs: int


@dataclass(frozen=True)
class RepEvalOutcome:
    """The result of a RepEval run, and the id of its judge."""

    result: RepEvalResult
    judge_id: str = ""


def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Count the texts, words, labels and pairs of a RepEval run, without loading a model.

    Raises:
        UsageError: The template, text mode or split is invalid.
        AspectError: The labels are unusable.
        NotFoundError: An id is unknown.
    """
    golden, parts, training = _checked(store, request)
    texts = texts_to_read(golden.items, request.settings.read(request.aspect))
    return RepEvalEstimate(
        n_texts=len(texts),
        n_words=sum(text_length(text) for text in texts),
        n_train=len(parts.train),
        n_validation=len(parts.validation),
        n_test=len(parts.test),
        n_pairs=training.good.size if request.settings.uses_pairs else 0,
    )


def _check_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> tuple[RepEvalRequest, str, str]:
    _checked(store, request)  # only the worker opens the model, so its errors show up in the run
    model = request.settings.model.name
    return request, f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}", model


def _checked(store: Store, request: RepEvalRequest) -> tuple[GoldenSet, RepEvalSplit, Training]:
    """Load the golden set, its split and the training items. Raises the same errors as `estimate_repeval`."""
    golden = store.goldens.load(request.golden_id)
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}. Choose an aspect of this golden set.")
    if not request.settings.model.name.strip():
        raise UsageError("Enter the name of the model: minilm, a Hugging Face id, or a folder on the worker's machine.")
    reading = request.settings.read(request.aspect)
    template_text(reading.template)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    return golden, parts, training_of(golden, request.aspect, parts, request.settings)


def split_of(store: Store, golden: GoldenSet, request: RepEvalRequest) -> Split | None:
    """Return the split of the calibration that the request names; None if the request names no calibration.

    Raises:
        UsageError: The calibration used another golden set or aspect.
        JobError: The run is not a calibration.
    """
    if not request.split_of:
        return None
    calibration = calibration_asked(store, request.split_of)
    if (calibration.golden_id, calibration.aspect) != (request.golden_id, request.aspect):
        raise UsageError(
            f"Run {request.split_of} calibrated {calibration.aspect!r} on another golden set or aspect. Choose a "
            "calibration on this golden set and aspect."
        )
    return split_of_run(store, request.split_of, golden)


def run_repeval(work: RunWork) -> RepEvalOutcome:
    """Read the hidden states, find the best layers and tokens, and add the result as a judge."""
    request, golden = work.request(RepEvalRequest), work.golden
    split = split_of(work.store, golden, request)
    how, progress = request.settings, work.progress
    result = fit_repeval(golden, request.aspect, how, split=split, here=work.settings, progress=progress).result
    return RepEvalOutcome(result, work.add_judge(judge_of(result, golden, work.run.run_id)))


def judge_of(result: RepEvalResult, golden: GoldenSet, run_id: str) -> JudgeScores:
    """Return RepEval scores as a judge that has seen the labels of the training and validation items."""
    method, cells = METHOD_NAMES[result.settings.method], len(result.members)
    place = f"layer {result.chosen.layer}, token {result.chosen.token}"
    where = f"mean of the {cells} best cells, the best at {place}" if cells > 1 else place
    return JudgeScores(
        name=f"RepEval, {method} ({result.model})",
        kind="repeval",
        aspect=result.aspect,
        values=result.scores,
        unscored=tuple(Unscored(golden.item_ids[k], "missing input", NO_TEXT) for k in blank_items(golden)),
        seen=tuple(sorted({*result.parts.train, *result.parts.validation})),
        on_scale=False,
        note=f"Hidden states of {result.model} projected by {method}: {where}. The model reads each text once "
        "and generates nothing.",
        run_id=run_id,
        calls_per_item=0.0,
    )


# ── ablations of a finished calibration ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """A request to run an ablation of the finished calibration `run_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str


def estimate_ablation(store: Store, settings: Settings, request: AblationRequest) -> Estimate:
    """Estimate calls, tokens and price of the scores that an ablation needs, except scores stored by the calibration.

    Raises JobError if the calibration has not finished.
    """
    from core.calibration.ablate import estimate_ablation as estimate
    from core.judging.judge_specs import SILENT, restore_judge

    _, calibration = _judged(store, request)
    golden = store.goldens.load(request.golden_id)
    state = require_judge(store, request.run_id)
    with closing(restore_judge(state, settings, store.replies, gate=SILENT)) as judge:
        return estimate(judge, golden, calibration, load_scores(store, request.run_id))


def _check_ablation(store: Store, settings: Settings, request: AblationRequest) -> tuple[AblationRequest, str, str]:
    run, _ = _judged(store, request)
    if run.kind != "calibration":
        raise JobError(
            f"Run {run.run_id} measured a version of the judge. For an ablation, choose a finished calibration."
        )
    return request, f"{request.aspect} · ablation · {judge_words(run.judge_spec)}", run.judge_spec


def run_ablation(work: RunWork) -> Ablation:
    """Score the variants of a calibration that have no scores yet, and return a comparison of all of them."""
    from core.calibration.ablate import ablate

    request = work.request(AblationRequest)
    calibration = load_calibration(work.store, request.run_id)
    with work.asking(require_judge(work.store, request.run_id), calibration.task) as judge:
        return ablate(judge, calibration, load_scores(work.store, request.run_id))


def last_run_on(store: Store, kind: RunKind, run_id: str) -> Run | None:
    """Return the newest run of `kind` that was requested for run `run_id`; None if there is none.

    Failed and cancelled runs are considered only if there is no other run.
    """
    about = _runs_on(store, kind, run_id)
    usable = [run for run in about if not run.finished or run.status in WITH_RESULT]
    return next(iter(usable or about), None)


def _runs_on(store: Store, kind: RunKind, run_id: str) -> list[Run]:
    runs = [run for run in store.runs.all(store.runs.get(run_id).project_id) if run.kind == kind]
    request: Any = KINDS[kind].request
    return [run for run in runs if unpack(request, run.request_json).run_id == run_id]


def _judged(
    store: Store, request: AblationRequest | RecheckRequest | RepeatRequest | ControlsRequest | SwitchRequest
) -> tuple[Run, Calibration]:
    """Return the run that made the judge of a request, and its result.

    Raises UsageError for a judge of another project, golden set or aspect.
    """
    run, calibration = store.runs.get(request.run_id), load_calibration(store, request.run_id)
    golden_id = run.golden_id if isinstance(request, RecheckRequest) else request.golden_id  # a recheck has its own
    if (run.project_id, run.golden_id, run.aspect) != (request.project_id, golden_id, request.aspect):
        raise UsageError(f"Run {run.run_id} belongs to another project, golden set or aspect. Choose another run.")
    return run, calibration


def _of_version(store: Store, run: Run) -> str:
    version = judge_line(store, run.project_id, run.aspect).of_run(run.run_id)
    return "" if version is None else f" of {version.name}"


# ── rechecks: the judge on newer labels, compared with its exported alignment ──────────────────────────────────


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """A request to recheck the judge of judge run `run_id` on the labels of golden set `golden_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str


@dataclass(frozen=True, slots=True)
class DatedRecheck:
    """A finished recheck of the judge of run `judged_id`.

    `version` is the judge's version number; 0 if it has none.
    """

    created_at: datetime
    judged_id: str
    version: int
    outcome: Recheck


def list_rechecks(store: Store, project_id: str, aspect: str) -> tuple[DatedRecheck, ...]:
    """List the finished rechecks of the judges of an aspect, oldest first."""
    rechecks, line = [], judge_line(store, project_id, aspect)
    for run in reversed(store.runs.all(project_id)):
        if run.kind == "recheck" and run.aspect == aspect:
            outcome = store.results.read(run.run_id, RESULT, Recheck)
            judged = unpack(RecheckRequest, run.request_json).run_id
            version = line.of_run(judged)
            if outcome is not None:
                rechecks.append(DatedRecheck(run.created_at, judged, version.number if version else 0, outcome))
    return tuple(rechecks)


def _check_recheck(store: Store, settings: Settings, request: RecheckRequest) -> tuple[RecheckRequest, str, str]:
    from core.judge_files import judge_card

    run, calibration = _judged(store, request)
    summary, aspect = require_aspect(store, request.golden_id, request.aspect)
    if aspect.n_labelled < 2:
        raise UsageError(
            f"{summary.name} has {aspect.n_labelled} labels for {request.aspect}, but a recheck needs at least 2. "
            "Label more items."
        )
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect)
    return request, f"recheck{_of_version(store, run)} · {summary.name}", str(calibration.judge_state.get("spec", ""))


def run_recheck(work: RunWork) -> Recheck:
    """Score newer items with the judge, and compare the scores with the labels. The scores don't become a new judge."""
    request = work.request(RecheckRequest)
    with _restored(work.store, request.run_id, work.settings, work.replies) as judge:
        return recheck(judge, work.golden, request.aspect, progress=work.progress)


def _restored(
    store: Store, run_id: str, settings: Settings, replies: ReplyStore | None = None
) -> AbstractContextManager[CalibratedJudge]:
    """Open the judge of a judge run as its judge file would."""
    from core.judge_files import judge_card
    from core.judge_files.loaded import restored

    return closing(restored(judge_card(load_calibration(store, run_id)), settings, replies, gate=NAMED))


# ── steadiness: the judge asked again about items of its calibration ───────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RepeatRequest:
    """A request to score some calibration items again with the judge of judge run `run_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    settings: RepeatSettings = field(default_factory=RepeatSettings)


def estimate_repeat(store: Store, settings: Settings, request: RepeatRequest) -> CallEstimate:
    """Estimate calls, tokens and price of scoring items again. Raises the same errors as `start_run`."""
    _check_repeat(store, settings, request)
    with _restored(store, request.run_id, settings) as judge:
        items = items_to_repeat(judge, store.goldens.load(request.golden_id), request.settings)
        one, times = judge.estimate(items), request.settings.times
    return CallEstimate(one.calls * times, *one.scaled(times))


def steadiness_of(store: Store, run_id: str) -> Steadiness | None:
    """Return the newest steadiness result for judge run `run_id`; None if there is none."""
    found = (store.results.read(run.run_id, RESULT, Steadiness) for run in _runs_on(store, "repeat", run_id))
    return next(filter(None, found), None)


def _check_repeat(store: Store, settings: Settings, request: RepeatRequest) -> tuple[RepeatRequest, str, str]:
    require_made_here(store, request.run_id)
    run, calibration = _judged(store, request)
    spec = str(calibration.judge_state.get("spec", ""))
    if spec.partition(":")[0] in ("offline", "recorded"):
        raise UsageError(
            f"The judge {spec} gives the same scores each time, so repeating it measures nothing. Choose a judge "
            "that uses a language model."
        )
    return request, f"steadiness{_of_version(store, run)} · {judge_words(spec)}", spec


def run_repeat(work: RunWork) -> Steadiness:
    """Score items with the judge again, without the cached replies of other runs."""
    request, own = work.request(RepeatRequest), work.store.replies.of_run(work.run.run_id, alone=True)
    with _restored(work.store, request.run_id, work.settings, own) as judge:
        return repeat(judge, work.golden, request.settings, progress=work.progress)


# ── controls: damaged texts compared with their originals ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ControlsRequest:
    """A request to score deliberately damaged calibration items with the judge of judge run `run_id`.

    `items` is the maximum number of items to damage.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    items: int = 30


def estimate_controls(store: Store, settings: Settings, request: ControlsRequest) -> CallEstimate:
    """Estimate calls, tokens and price of scoring damaged texts. Raises the same errors as `start_run`."""
    _check_controls(store, settings, request)
    _, calibration = _judged(store, request)
    golden, positions = store.goldens.load(request.golden_id), calibration.split.calibration
    with _restored(store, request.run_id, settings) as judge:
        return judge.estimate(items_of(spoiled_pairs(golden, request.aspect, positions, n=request.items)))


def controls_of(store: Store, run_id: str) -> tuple[Control, ...] | None:
    """Return the newest results on damaged texts for judge run `run_id`; None if there are none.

    There is one result per kind of damage.
    """
    found = (store.results.read(run.run_id, RESULT, tuple[Control, ...]) for run in _runs_on(store, "controls", run_id))
    return next(filter(None, found), None)


def _check_controls(store: Store, settings: Settings, request: ControlsRequest) -> tuple[ControlsRequest, str, str]:
    require_made_here(store, request.run_id)
    run, calibration = _judged(store, request)
    spec = str(calibration.judge_state.get("spec", ""))
    if spec.startswith("recorded:"):
        raise UsageError("A recorded judge has no scores for spoiled texts. Choose a judge that can score new texts.")
    return request, f"spoiled texts{_of_version(store, run)} · {judge_words(spec)}", spec


def run_controls(work: RunWork) -> tuple[Control, ...]:
    """Score damaged texts and their originals, and count how often the judge prefers the original."""
    request, golden = work.request(ControlsRequest), work.golden
    positions = load_calibration(work.store, request.run_id).split.calibration
    with _restored(work.store, request.run_id, work.settings, work.replies) as judge:

        def score(items: Sequence[Item]) -> Verdicts:
            calls = len(items) * len(judge.criteria)
            work.progress.publish(Stage("controls", "scoring spoiled texts", 0, calls))
            verdicts = judge.score(items, on_progress=work.progress.advance)
            work.progress.publish(Stage("done", "done", calls, calls, judge.spent))
            return verdicts

        return negative_controls(golden, request.aspect, score, positions, n=request.items)


# ── other models: the criteria of a judge on the same items ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """A request to try the models `judges` (one to five SPECs) with the criteria of judge run `run_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    judges: tuple[str, ...]


def estimate_switch(store: Store, settings: Settings, request: SwitchRequest) -> CallEstimate:
    """Estimate calls, tokens and price of trying other models. Raises the same errors as `start_run`.

    The estimate ignores cached replies. It includes the judge's own model, because its replies may have been deleted.
    """
    request, _, _ = _check_switch(store, settings, request)
    golden, split = store.goldens.load(request.golden_id), load_calibration(store, request.run_id).split
    items = [golden.items[k] for k in sorted({*split.calibration, *split.held_out})]
    opened, total = _opening(store, request.run_id, settings), CallEstimate(0, 0, 0, 0.0)
    for spec in (None, *request.judges):
        with closing(opened(spec)) as judge:
            total += judge.estimate(items)
    return total


def models_tried(store: Store, run_id: str) -> tuple[TriedModel, ...] | None:
    """Return the newest trial of other models for judge run `run_id`; None if there is none.

    The judge's own model comes first.
    """
    found = (
        store.results.read(run.run_id, RESULT, tuple[TriedModel, ...]) for run in _runs_on(store, "switch", run_id)
    )
    return next(filter(None, found), None)


def _opening(
    store: Store, run_id: str, settings: Settings, replies: ReplyStore | None = None
) -> Callable[[str | None], CalibratedJudge]:
    """Return a function that opens the judge of run `run_id` with a given model (None: its own)."""
    from core.judge_files import CalibratedJudge, judge_card
    from core.judge_files.loaded import restored

    card = judge_card(load_calibration(store, run_id))

    def opened(spec: str | None) -> CalibratedJudge:
        if spec is None:
            return restored(card, settings, replies, gate=NAMED)
        return CalibratedJudge.of(card, with_model(store, settings, run_id, spec, replies))

    return opened


def _check_switch(store: Store, settings: Settings, request: SwitchRequest) -> tuple[SwitchRequest, str, str]:
    require_made_here(store, request.run_id)
    run, calibration = _judged(store, request)
    own, opened = str(calibration.judge_state.get("spec", "")), _opening(store, request.run_id, settings)
    specs = dict.fromkeys(spec.strip() for spec in request.judges)
    for spec in specs:
        with closing(opened(spec)) as judge:
            if judge.spec == own:
                raise UsageError(f"{spec} is the judge's own model. Name other models.")
    if not 1 <= len(specs) <= MOST:
        raise UsageError(f"Name 1 to {MOST} other models; got {len(specs)}.")
    title = f"other models{_of_version(store, run)} · {', '.join(map(judge_words, specs))}"
    return replace(request, judges=tuple(specs)), title, own


def run_switch(work: RunWork) -> tuple[TriedModel, ...]:
    """Score the items of the judge's split with each model.

    There are no p values if judges were already compared on these items.
    """
    request, store, run = work.request(SwitchRequest), work.store, work.run
    split, opened = (
        load_calibration(store, request.run_id).split,
        _opening(store, request.run_id, work.settings, work.replies),
    )
    among = [*split.calibration, *split.held_out]
    found = switch(opened, work.golden, request.judges, among=among, progress=work.progress)
    accesses = list_held_out_accesses(store, run.project_id, run.golden_id, run.aspect)
    own_look = next((access.number for access in accesses if access.at >= run.created_at), None)
    line = judge_line(store, run.project_id, run.aspect)
    if not (reason := compared_before(line, run.golden_id, accesses, before=own_look)):
        return found
    return tuple(
        replace(one, p_holm=None, difference=one.difference and replace(one.difference, p=None, p_reason=reason))
        for one in found
    )


KINDS["styles"] = Kind(
    StylesRequest,
    StylesView,
    "started a comparison of styles",
    _check_styles,
    run_styles,
    documents={SNAPSHOT: StylesView},
)
KINDS["repeval"] = Kind(RepEvalRequest, RepEvalOutcome, "started RepEval", _check_repeval, run_repeval, lane="model")
KINDS["ablation"] = Kind(
    AblationRequest,
    Ablation,
    "started an ablation",
    _check_ablation,
    run_ablation,
    opens=lambda request: "an ablation measured variants on them",
)
KINDS["recheck"] = Kind(RecheckRequest, Recheck, "started a recheck", _check_recheck, run_recheck)
KINDS["repeat"] = Kind(RepeatRequest, Steadiness, "asked the judge again", _check_repeat, run_repeat)
KINDS["controls"] = Kind(
    ControlsRequest, tuple[Control, ...], "asked about spoiled texts", _check_controls, run_controls
)
KINDS["switch"] = Kind(
    SwitchRequest,
    tuple[TriedModel, ...],
    "tried other models",
    _check_switch,
    run_switch,
    opens=lambda request: MODELS_TRIED,
)
