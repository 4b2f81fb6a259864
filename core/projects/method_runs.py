"""Runs of methods other than calibration: grids of judging styles, and RepEval.

A resumed RepEval run reads the texts whose states are not in CONCORD_HOME/states; only the worker loads a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from core.comparison.style_grid import (
    GivenCriteria,
    StylesEstimate,
    StylesSettings,
    StylesView,
    estimate_of_styles,
)
from core.comparison.style_grid import styles as compared_styles
from core.errors import NotFoundError, UsageError
from core.judging.judge_protocol import NO_TEXT
from core.judging.judge_specs import NAMED, language_model
from core.project_records import JUDGES
from core.projects.calibration import calibration_asked, sides_of
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.run_work import RunWork, start_run
from core.records import Criteria, GoldenSet, JudgeScores, Provenance, Split, Unscored
from core.repeval import Method, RepEvalResult, RepEvalSettings, split_three
from core.repeval.fitted import fit_repeval
from core.repeval.model import EMBEDDED
from core.repeval.projection import Training
from core.repeval.search import FEW_LABELS, RepEvalSplit, blank_items, shortage_of_pairs, training_of
from core.repeval.states import template_text, texts_to_read
from core.settings import Settings
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store
from core.texts import text_length
from core.wording import judge_words


@dataclass(frozen=True, slots=True)
class StylesRequest:
    """Ask the judge `judge_spec` in styles; `criteria` maps an aspect to the id of criteria of the project ("": none).

    `aspect` is the first of those of `settings`, for lists of runs.
    """

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str
    settings: StylesSettings
    criteria: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.aspect != self.settings.aspects[0]:
            raise UsageError(f"The grid's aspect must be the first of its aspects, {self.settings.aspects[0]!r}.")


def estimate_styles(store: Store, settings: Settings, request: StylesRequest) -> StylesEstimate:
    """Calls, tokens and price of a grid before it starts, by cell and in total.

    Raises what the start would: UsageError for a judge that is no language model or criteria of another aspect,
    AuthError without a key, AspectError when too few labels are left to measure on, NotFoundError for unknown ids.
    """
    golden = store.goldens.load(request.golden_id)
    with closing(language_model(request.judge_spec, settings)) as judge:
        return estimate_of_styles(golden, judge, request.settings, _given(store, golden, request))


@requires("reviewer", "started a grid of styles")
def start_styles(store: Store, settings: Settings, request: StylesRequest) -> str:
    """Start a grid of styles (`start_run`); each finished style enters the project's judges (kind "style").

    NotFoundError for an unknown golden set, aspect or criteria; UsageError for a judge that is no language model.
    """
    if request.judge_spec == "offline":
        raise UsageError(
            "The offline judge cannot be asked in styles: it is no language model. Choose openai:MODEL@BASE_URL, "
            "hf:ID_OR_PATH, or scripted, the stand-in for demonstrations."
        )
    for aspect in request.settings.aspects:
        golden, _ = require_aspect(store, request.golden_id, aspect)
        _criteria_of(store, request, aspect)
    what = "styles" if request.settings.n_items is None else "pilot of styles"
    about = f"{len(request.settings.styles)} × {', '.join(request.settings.aspects)} · {golden.name}"
    title = f"{what}: {about} · {judge_words(request.judge_spec)}"
    return start_run(store, settings, "styles", request, title=title, judge_spec=request.judge_spec)


def run_styles(work: RunWork) -> StylesView:
    """Ask in all styles, as far as the budget reaches; every finished style is entered as a judge."""
    request = work.request(StylesRequest)

    def enter(judge: JudgeScores, replies: Mapping[str, tuple[str, ...]]) -> str:
        return work.add_judge(replace(judge, run_id=work.run.run_id), replies)

    with closing(language_model(request.judge_spec, work.settings, work.replies, gate=NAMED)) as judge:
        given = _given(work.store, work.golden, request)
        chosen = request.settings
        return compared_styles(work.golden, judge, chosen, given, enter=enter, progress=work.progress).view


def styles_so_far(store: Store, run_id: str) -> StylesView | None:
    """What has come of a grid by now, or in the end; None before its first sign.  NotFoundError for an unknown id."""
    store.runs.get(run_id)
    return store.results.read(run_id, RESULT, StylesView) or store.results.read(run_id, SNAPSHOT, StylesView)


# ── what a request means on the store ────────────────────────────────────────────────────────────────────────


def _given(store: Store, golden: GoldenSet, request: StylesRequest) -> GivenCriteria:
    """The criteria of the project that `request` names, and what they saw."""
    criteria = {aspect: _criteria_of(store, request, aspect) for aspect in request.settings.aspects}
    return GivenCriteria(criteria, {aspect: criteria_saw(store, golden, text) for aspect, text in criteria.items()})


def _criteria_of(store: Store, request: StylesRequest, aspect: str) -> Criteria:
    criteria_id = request.criteria.get(aspect, "")
    if not criteria_id:
        return Criteria("", aspect, Provenance("none"))
    criteria = store.criteria.get(request.project_id, criteria_id).criteria
    if criteria.aspect != aspect:
        raise UsageError(f"The criteria {criteria_id} are for {criteria.aspect!r} and cannot judge {aspect!r}.")
    return criteria


def criteria_saw(store: Store, golden: GoldenSet, criteria: Criteria) -> tuple[int, ...]:
    """Positions in `golden` whose labels chose or fitted these criteria, ascending: nothing may be reported there.

    Those are the calibration items of every calibration that scored a member of the criteria's family, and the items
    that drafts and refinements of the family were shown.  The family are the ancestors, and whatever has the same
    text: a copy in another project or for another aspect has seen what the original saw.  Items of another golden set
    count where the same text is here.
    """
    if not criteria.text:
        return ()
    projects = store.projects.all()
    known = [row.criteria for project in projects for row in store.criteria.all(project.project_id)]
    family, texts, waiting = [criteria], set[str](), [criteria]
    while waiting:
        text = " ".join(waiting.pop().text.split())
        if text not in texts:
            texts.add(text)
            same = [member for member in known if " ".join(member.text.split()) == text]
            parents = {parent for member in same for parent in member.provenance.parents}
            family += same
            waiting += [member for member in known if member.criteria_id in parents]
    names = {member.criteria_id for member in family}
    shown = {item_id for member in family for item_id in member.provenance.item_ids}
    seen = {k for k, item_id in enumerate(golden.item_ids) if item_id in shown}
    for project in projects:
        aligned = {row.run_id for row in store.criteria.alignments(project.project_id) if row.criteria_id in names}
        for run in [run for run in store.runs.all(project.project_id) if run.kind in JUDGES]:
            theirs = store.goldens.load(run.golden_id)
            if run.run_id in aligned or store.results.scores(run.run_id, theirs.item_ids, list(names)).criteria_ids:
                items = [theirs.items[k] for k in sides_of(store, run.run_id, theirs).calibration]
                same_texts = {(item.source, item.target) for item in items}
                ids = {item.item_id for item in items} if theirs.digest == golden.digest else set()
                seen |= {
                    k
                    for k, item in enumerate(golden.items)
                    if item.item_id in ids or (not ids and (item.source, item.target) in same_texts)
                }
    return tuple(sorted(seen))


# ── RepEval ────────────────────────────────────────────────────────────────────────────────────────────────────────


METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "paper-pca": "PCA as the paper",
    "paper-svm": "SVM as the paper",
}


@dataclass(frozen=True, slots=True)
class RepEvalRequest:
    """Read the texts of a golden set with a model and project its hidden states on one aspect.

    `split_of` names a calibration of the same golden set and aspect: RepEval is then evaluated on that run's held-out
    items and learns from its calibration items; "" draws a split of its own.
    """

    project_id: str
    golden_id: str
    aspect: str
    settings: RepEvalSettings = field(default_factory=RepEvalSettings)
    split_of: str = ""


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
    """A finished run: the result, and the judge it entered."""

    result: RepEvalResult
    judge_id: str = ""


def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Texts, words, parts and pairs of a run before it starts; no model is loaded.

    Raises what the run would raise later about the request: UsageError about the template, the texts or the split,
    AspectError when the labels cannot serve, NotFoundError for unknown ids.
    """
    golden, parts, training = _checked(store, request)
    texts = texts_to_read(golden.items, request.settings.read(request.aspect))
    shortage = shortage_of_pairs(training, request.settings)
    notes = [shortage] if shortage else []
    if len(parts.validation) < FEW_LABELS:
        notes.append(
            f"Layer and token are chosen on {len(parts.validation)} validation labels only: another draw may choose "
            "others. More labelled sources make the choice steadier."
        )
    return RepEvalEstimate(
        n_texts=len(texts),
        n_words=sum(text_length(text) for text in texts),
        n_train=len(parts.train),
        n_validation=len(parts.validation),
        n_test=len(parts.test),
        n_pairs=training.good.size if request.settings.uses_pairs else 0,
        notes=tuple(notes),
    )


@requires("reviewer", "started RepEval")
def start_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> str:
    """Start a RepEval run (`start_run`); its score becomes one of the project's judges.

    Raises like `estimate_repeval`; what is wrong with the model shows in the run, because only the worker opens it.
    """
    _checked(store, request)
    model = request.settings.model.name
    title = f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}"
    return start_run(store, settings, "repeval", request, title=title, judge_spec=model)


def _checked(store: Store, request: RepEvalRequest) -> tuple[GoldenSet, RepEvalSplit, Training]:
    """The golden set, its split and what is learnt from; raises the errors of `estimate_repeval`."""
    golden = store.goldens.load(request.golden_id)
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}.")
    if not request.settings.model.name.strip():
        raise UsageError("No model is named; give minilm, a Hugging Face id, or a folder on the worker's machine.")
    reading = request.settings.read(request.aspect)
    template_text(reading.template)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    return golden, parts, training_of(golden, request.aspect, parts, request.settings)


def split_of(store: Store, golden: GoldenSet, request: RepEvalRequest) -> Split | None:
    """The split of the calibration `request.split_of`; None for one of RepEval's own.

    UsageError when that run is of another golden set or aspect, JobError when it is no calibration.
    """
    if not request.split_of:
        return None
    calibration = calibration_asked(store, request.split_of)
    if (calibration.golden_id, calibration.aspect) != (request.golden_id, request.aspect):
        raise UsageError(
            f"Run {request.split_of} calibrated {calibration.aspect!r} of another golden set or aspect; its held-out "
            f"items are not those of {request.aspect!r} here. Choose a calibration of the same golden set and aspect."
        )
    return sides_of(store, request.split_of, golden)


def reads_a_model(request: RepEvalRequest) -> bool:
    """Whether the work is a model that wants a GPU: any but the embedded encoder, or one that asks for a device."""
    device, name = request.settings.model.device, request.settings.model.name
    return device in ("cuda", "mps") or (name != EMBEDDED and device != "cpu")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_repeval(work: RunWork) -> RepEvalOutcome:
    """Read, search, and enter the score among the judges."""
    request, golden = work.request(RepEvalRequest), work.golden
    split = split_of(work.store, golden, request)
    how, progress = request.settings, work.progress
    result = fit_repeval(golden, request.aspect, how, split=split, here=work.settings, progress=progress).result
    return RepEvalOutcome(result, work.add_judge(judge_of(result, golden, work.run.run_id)))


def judge_of(result: RepEvalResult, golden: GoldenSet, run_id: str) -> JudgeScores:
    """The score of every item as a judge; it saw the labels of the training and validation items."""
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
        note=f"Hidden states of {result.model} projected by {method}: {where}. No call, one pass of the model a text.",
        run_id=run_id,
        calls_per_item=0.0,
    )
