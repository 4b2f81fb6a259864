"""Runs of methods other than calibration: grids of judging styles, RepEval, ablations, rechecks, and steadiness.

A resumed RepEval run reads the texts whose states are not in CONCORD_HOME/states; only the worker loads a model.  Of a
finished calibration, ablations show what each part of its judge adds, and rechecks whether the judge still holds on
newer labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from core.calibration.ablate import Ablation
from core.calibration.calibration_records import Estimate
from core.comparison.recheck import Recheck, newer_items, recheck
from core.comparison.steadiness import RepeatSettings, Steadiness, items_to_repeat, repeat
from core.comparison.style_grid import (
    GivenCriteria,
    StylesEstimate,
    StylesSettings,
    StylesView,
    estimate_of_styles,
)
from core.comparison.style_grid import styles as compared_styles
from core.errors import JobError, NotFoundError, UsageError
from core.judging.judge_protocol import NO_TEXT, CallEstimate
from core.judging.judge_specs import NAMED, language_model
from core.project_records import JUDGES, WITH_RESULT, Run, RunKind
from core.projects.calibration import calibration_asked, sides_of
from core.projects.judge_line import judge_line
from core.projects.project_list import require_aspect
from core.projects.run_control import (
    KINDS,
    Kind,
    RunWork,
    load_calibration,
    load_scores,
    require_judge,
    require_made_here,
)
from core.records import Criteria, GoldenSet, JudgeScores, Provenance, Split, Unscored, text_length
from core.repeval import Method, RepEvalResult, RepEvalSettings, split_three
from core.repeval.fitted import fit_repeval
from core.repeval.projection import Training
from core.repeval.search import FEW_LABELS, RepEvalSplit, blank_items, shortage_of_pairs, training_of
from core.repeval.states import template_text, texts_to_read
from core.settings import Settings
from core.store.database import unpack
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store
from core.wording import judge_words


@dataclass(frozen=True, slots=True)
class StylesRequest:
    """Ask the judge `judge_spec` in styles; `criteria` maps the aspect to the id of criteria of the project."""

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str
    settings: StylesSettings
    criteria: Mapping[str, str] = field(default_factory=dict)


def estimate_styles(store: Store, settings: Settings, request: StylesRequest) -> StylesEstimate:
    """Calls, tokens and price of a grid before it starts, by cell and in total.

    Raises what the start would: UsageError for a judge that is no language model or criteria of another aspect,
    AuthError without a key, AspectError when too few labels are left to measure on, NotFoundError for unknown ids.
    """
    golden = store.goldens.load(request.golden_id)
    with closing(language_model(request.judge_spec, settings)) as judge:
        given = _given(store, golden, request)
        return estimate_of_styles(golden, request.aspect, judge, request.settings, given)


def _check_styles(store: Store, settings: Settings, request: StylesRequest) -> tuple[StylesRequest, str, str]:
    if request.judge_spec == "offline":
        raise UsageError(
            "The offline judge cannot be asked in styles: it is not a language model. Choose openai:MODEL@BASE_URL, "
            "hf:ID_OR_PATH, or scripted, the stand-in for demonstrations."
        )
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    _criteria_of(store, request)
    what = "styles" if request.settings.n_items is None else "pilot of styles"
    about = f"{len(request.settings.styles)} × {request.aspect} · {golden.name}"
    return request, f"{what}: {about} · {judge_words(request.judge_spec)}", request.judge_spec


def run_styles(work: RunWork) -> StylesView:
    """Ask in all styles, as far as the budget reaches; every finished style is entered as a judge."""
    request = work.request(StylesRequest)

    def enter(judge: JudgeScores, replies: Mapping[str, tuple[str, ...]]) -> str:
        return work.add_judge(replace(judge, run_id=work.run.run_id), replies)

    with closing(language_model(request.judge_spec, work.settings, work.replies, gate=NAMED)) as judge:
        given, chosen = _given(work.store, work.golden, request), request.settings
        return compared_styles(
            work.golden, request.aspect, judge, chosen, given, enter=enter, progress=work.progress
        ).view


def styles_so_far(store: Store, run_id: str) -> StylesView | None:
    """What has come of a grid by now, or in the end; None before its first sign.  NotFoundError for an unknown id."""
    store.runs.get(run_id)
    return store.results.read(run_id, RESULT, StylesView) or store.results.read(run_id, SNAPSHOT, StylesView)


# ── what a request means on the store ────────────────────────────────────────────────────────────────────────


def _given(store: Store, golden: GoldenSet, request: StylesRequest) -> GivenCriteria:
    """The criteria of the project that `request` names, and what they saw."""
    criteria = _criteria_of(store, request)
    return GivenCriteria(criteria, criteria_saw(store, golden, criteria))


def _criteria_of(store: Store, request: StylesRequest) -> Criteria:
    aspect, criteria_id = request.aspect, request.criteria.get(request.aspect, "")
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


def _check_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> tuple[RepEvalRequest, str, str]:
    _checked(store, request)  # what is wrong with the model shows in the run: only the worker opens it
    model = request.settings.model.name
    return request, f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}", model


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
        note=f"Hidden states of {result.model} projected by {method}: {where}. No calls; one pass of the model "
        "per text.",
        run_id=run_id,
        calls_per_item=0.0,
    )


# ── ablations of a finished calibration ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """The ablation table of the finished calibration `run_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str


def estimate_ablation(store: Store, settings: Settings, request: AblationRequest) -> Estimate:
    """Calls, tokens and price of the ablation before it starts: only for scores that the calibration has not stored.

    Raises what the start would.
    """
    from core.calibration.ablate import estimate_ablation as estimate
    from core.judging.judge_specs import SILENT, restore_judge

    _require_calibration(store, request)
    calibration = load_calibration(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    state = require_judge(store, request.run_id)
    with closing(restore_judge(state, settings, store.replies, gate=SILENT)) as judge:
        return estimate(judge, golden, calibration, load_scores(store, request.run_id))


def _check_ablation(store: Store, settings: Settings, request: AblationRequest) -> tuple[AblationRequest, str, str]:
    _require_calibration(store, request)
    spec = store.runs.get(request.run_id).judge_spec
    return request, f"{request.aspect} · ablation · {judge_words(spec)}", spec


def run_ablation(work: RunWork) -> Ablation:
    """Score what is missing for the table, and enter the variants that are new among the judges."""
    from core.calibration.ablate import ablate

    request = work.request(AblationRequest)
    calibration = load_calibration(work.store, request.run_id)
    with work.asking(require_judge(work.store, request.run_id), calibration.task) as judge:
        scores = load_scores(work.store, request.run_id)
        result = ablate(judge, calibration, scores)
    called = judge_words(result.judge_spec)
    rows = dict(zip(result.scores.criteria_ids, result.scores.values, strict=True))
    for row in result.rows:
        if row.key in ("final", "without criteria"):  # among the judges since the calibration
            continue
        variant = JudgeScores(
            name=f"{called} · {row.key}",
            kind="calibrated",
            aspect=result.task.aspect,
            values=rows[row.key],
            unscored=result.scores.unscored.get(row.key, ()),
            seen=result.calibration_positions,  # their labels chose its criteria
            note=f"{row.what} The judge {called}, from an ablation of its calibration.",
            run_id=work.run.run_id,
            calls_per_item=float(len(row.criteria_ids)),
        )
        work.add_judge(variant)
    return result


def last_run_on(store: Store, kind: RunKind, run_id: str) -> Run | None:
    """The newest run of a `kind` that is about run `run_id`; one that is going on or done before one that failed."""
    about = _runs_on(store, kind, run_id)
    usable = [run for run in about if not run.finished or run.status in WITH_RESULT]
    return next(iter(usable or about), None)


def _runs_on(store: Store, kind: RunKind, run_id: str) -> list[Run]:
    runs = [run for run in store.runs.all(store.runs.get(run_id).project_id) if run.kind == kind]
    request: Any = KINDS[kind].request
    return [run for run in runs if unpack(request, run.request_json).run_id == run_id]


def _require_calibration(store: Store, request: AblationRequest) -> None:
    store.projects.get(request.project_id)
    run = store.runs.get(request.run_id)
    ours = (run.project_id, run.golden_id, run.aspect) == (request.project_id, request.golden_id, request.aspect)
    if run.kind != "calibration" or run.status not in WITH_RESULT or not ours:
        raise JobError(
            f"Run {request.run_id} ({run.kind} of {run.aspect}, {run.status}) is not a finished calibration of "
            f"{request.aspect} on this golden set. Run a calibration to its end first."
        )


# ── rechecks: the judge on newer labels, compared with its exported alignment ────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Recheck the judge of run `run_id` (a calibration or a version) on the labels of the golden set `golden_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str


@dataclass(frozen=True, slots=True)
class DatedRecheck:
    """A finished recheck: when it was, of which version of the judge, on which golden set, and what it found.

    `judged_id` is the run that came to that judge; `version` is 0 where that is no version.
    """

    run_id: str
    created_at: datetime
    judged_id: str
    version: int
    golden_id: str
    outcome: Recheck

    @property
    def judge_name(self) -> str:
        return f"version {self.version}" if self.version else "a calibration"


def list_rechecks(store: Store, project_id: str, aspect: str) -> tuple[DatedRecheck, ...]:
    """The finished rechecks of the versions of the judge of an aspect, oldest first."""
    rechecks, line = [], judge_line(store, project_id, aspect)
    for run in reversed(store.runs.all(project_id)):
        if run.kind == "recheck" and run.aspect == aspect and run.status in WITH_RESULT:
            outcome = store.results.read(run.run_id, RESULT, Recheck)
            judged = unpack(RecheckRequest, run.request_json).run_id
            version = line.of_run(judged)
            if outcome is not None:
                number = 0 if version is None else version.number
                rechecks.append(DatedRecheck(run.run_id, run.created_at, judged, number, run.golden_id, outcome))
    return tuple(rechecks)


def _check_recheck(store: Store, settings: Settings, request: RecheckRequest) -> tuple[RecheckRequest, str, str]:
    from core.judge_files import judge_card

    run = store.runs.get(request.run_id)
    calibration = load_calibration(store, request.run_id)
    if run.project_id != request.project_id:
        raise UsageError("The judge belongs to another project.")
    if request.aspect != calibration.task.aspect:
        raise UsageError(f"The judge rates {calibration.task.aspect!r}, not {request.aspect!r}.")
    summary, aspect = require_aspect(store, request.golden_id, request.aspect)
    if aspect.n_labelled < 2:
        raise UsageError(
            f"{summary.name} has {aspect.n_labelled} labels of {request.aspect}; a recheck needs at least 2."
        )
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect)
    version = judge_line(store, run.project_id, run.aspect).of_run(run.run_id)
    which = "" if version is None else f" of {version.name}"
    return request, f"recheck{which} · {summary.name}", str(calibration.judge_state.get("spec", ""))


def run_recheck(work: RunWork) -> Recheck:
    """Open the judge as its file would be, score, and compare; nothing enters the project's judges."""
    from core.judge_files import judge_card
    from core.judge_files.loaded import restored

    request = work.request(RecheckRequest)
    calibration = load_calibration(work.store, request.run_id)
    with closing(restored(judge_card(calibration), work.settings, work.replies, gate=NAMED)) as judge:
        return recheck(
            judge,
            work.golden,
            request.aspect,
            progress=work.progress,
        )


# ── steadiness: the judge asked again about items of its calibration ───────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RepeatRequest:
    """Ask the judge of run `run_id` (a calibration or a version) again about some of its calibration items."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    settings: RepeatSettings = field(default_factory=RepeatSettings)


def estimate_repeat(store: Store, settings: Settings, request: RepeatRequest) -> CallEstimate:
    """Calls, tokens and price of asking again; raises what the start would."""
    from core.judge_files import judge_card
    from core.judge_files.loaded import restored

    _check_repeat(store, settings, request)
    card = judge_card(load_calibration(store, request.run_id))
    with closing(restored(card, settings, gate=NAMED)) as judge:
        golden = store.goldens.load(request.golden_id)
        one = judge.estimate(items_to_repeat(judge, golden, request.settings))
    times = request.settings.times
    return CallEstimate(one.calls * times, *one.scaled(times))


def steadiness_of(store: Store, run_id: str) -> Steadiness | None:
    """What asking the judge of calibration or version `run_id` again has shown; None before."""
    found = (store.results.read(run.run_id, RESULT, Steadiness) for run in _runs_on(store, "repeat", run_id))
    return next(filter(None, found), None)


def _check_repeat(store: Store, settings: Settings, request: RepeatRequest) -> tuple[RepeatRequest, str, str]:
    require_made_here(store, request.run_id)
    run = store.runs.get(request.run_id)
    calibration = load_calibration(store, request.run_id)
    if (run.project_id, run.golden_id, run.aspect) != (request.project_id, request.golden_id, request.aspect):
        raise UsageError("The judge belongs to another project, golden set or aspect.")
    spec = str(calibration.judge_state.get("spec", ""))
    if spec.partition(":")[0] in ("offline", "recorded"):
        raise UsageError(f"The judge {spec} asks no model, so asking again gives the same scores.")
    version = judge_line(store, run.project_id, run.aspect).of_run(run.run_id)
    which = "" if version is None else f" of {version.name}"
    return request, f"steadiness{which} · {judge_words(spec)}", spec


def run_repeat(work: RunWork) -> Steadiness:
    """Open the judge as its file would be, with replies that serve this run alone."""
    from core.judge_files import judge_card
    from core.judge_files.loaded import restored

    request = work.request(RepeatRequest)
    card = judge_card(load_calibration(work.store, request.run_id))
    own = work.store.replies.of_run(work.run.run_id, alone=True)
    with closing(restored(card, work.settings, own, gate=NAMED)) as judge:
        return repeat(judge, work.golden, request.settings, progress=work.progress)


KINDS["styles"] = Kind(
    StylesRequest,
    StylesView,
    "started a grid of styles",
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
