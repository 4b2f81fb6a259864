"""Judging styles: what a grid will cost, its start and its run, and the evaluation steps that come out of it."""

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
from core.errors import UsageError
from core.judging.judge_specs import NAMED, language_model
from core.project_records import JUDGES
from core.projects.calibration import sides_of
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.run_work import RunWork, start_run
from core.records import Criteria, GoldenSet, JudgeScores, Provenance
from core.settings import Settings
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store
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
