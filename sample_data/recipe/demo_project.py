"""Build the demo project with the calls that the screens make; only what people say is written by hand.

The people are invented and named so; their labels in the labelling pass are those of the simulated raters of
`sample_data`.  Every number comes from a run on this machine, done here step by step as a worker would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from core import projects
from core.calibration.calibration_records import CalibrationSettings, RoundSettings
from core.data import load_golden
from core.errors import JobError
from core.fusion.fusion_settings import FusionSettings
from core.project_records import DEMO_PROJECT, Actor
from core.projects.calibration import CalibrationRequest, VersionRequest
from core.projects.criteria import RescoreRequest, RoundRequest
from core.projects.judge_line import VersionState
from core.projects.labelling import LabelAspect, LabelPlan, TriageVerdict
from core.projects.method_runs import AblationRequest, RecheckRequest, RepEvalRequest
from core.projects.misaligned_items import ItemScore, TriageRequest
from core.projects.project_files import ASPECT, CHOSEN, DEFINITION, DEMO_NAME
from core.projects.project_judges import MetricsRequest
from core.projects.review import Choice, Point, Verdict
from core.projects.start_and_resume import execute_here
from core.records import GoldenSet, Scale
from core.repeval.search import RepEvalSettings
from core.repeval.states import Extraction
from core.settings import Settings
from core.store.store import Store
from sample_data.recipe.demo_calibration import GOLDEN, NEWER, SAMPLES, SPEC

T = TypeVar("T")
ADA, BEN, CHI = "Ada (demo)", "Ben (demo)", "Chi (demo)"
PEOPLE = (ADA, BEN, CHI)
OFFLINE = CalibrationSettings(rounds=2, fit_strengths=False)
PASS_ITEMS, LEFT_OPEN = 24, 3
NEW_RULE = "Start with the result: take off 2 if a scene, a question or background opens the text."
"""What a person adds by hand: the rule of the house that no draft finds."""
METRICS = ("overlap", "similarity")


@dataclass
class Build:
    """The project as it grows; what a chapter leaves for the next."""

    store: Store
    settings: Settings
    golden: GoldenSet
    golden_id: str = ""
    newer_ids: dict[str, str] = field(default_factory=dict)
    run_id: str = ""
    best: str = ""
    round_id: str = ""
    edited: str = ""
    rescore_id: str = ""
    judge_id: str = ""

    @property
    def where(self) -> tuple[str, str, str]:
        """Project, golden set and aspect, as requests begin."""
        return DEMO_PROJECT, self.golden_id, ASPECT

    def as_(self, name: str) -> Store:
        return self.store.acting(Actor(name))

    def done(self, run_id: str) -> str:
        """Work the run off here; JobError unless it ends well."""
        status = execute_here(self.store, self.settings, run_id)
        if status != "done":
            raise JobError(f"Run {run_id} of the demo ended as {status}.")
        return run_id

    def decide(self, name: str, number: int, state: VersionState, reason: str) -> None:
        """Somebody decides on a version of the judge; what is taken into use is approved first."""
        store, line = self.as_(name), projects.judge_line(self.store, DEMO_PROJECT, ASPECT)
        projects.decide_version(store, DEMO_PROJECT, ASPECT, number, state, reason=reason, decided=line.decided)


def build_demo(store: Store, settings: Settings, say: Callable[[str], object] = lambda _: None) -> None:
    """Fill the empty `store` with the demo project; takes about a minute."""
    store.projects.add(DEMO_NAME, DEMO_PROJECT)
    build = Build(store, settings, load_golden(GOLDEN))
    # screens open on the set that came last, and that is to be the calibrated one
    for name in reversed(NEWER):
        newer = load_golden(SAMPLES / "newer" / f"{name}.jsonl")
        build.newer_ids[name] = projects.add_golden(build.as_(ADA), DEMO_PROJECT, newer)
    build.golden_id = projects.add_golden(build.as_(ADA), DEMO_PROJECT, build.golden)
    for chapter in CHAPTERS:
        say(chapter.__name__.strip("_"))
        chapter(build)


# ── the chapters ─────────────────────────────────────────────────────────────────────────────────────────────


def _label(build: Build) -> None:
    """A blind pass of three raters over some items; one has a few left, and two disagreements are decided."""
    scale = Scale(1, 5, 1)
    plan = LabelPlan(
        (LabelAspect(ASPECT, scale, DEFINITION),),
        shared=PASS_ITEMS,
        instructions="The house style: at most 25 words, in one sentence; the result first; no opinion; no talk to the "
        "reader; every figure exact.\n"
        "This pass is part of the demo. A program made its labels.",
    )
    name = "Second look at 24 notifications (simulated labels)"
    pass_id = projects.start_pass(build.as_(ADA), DEMO_PROJECT, build.golden_id, name, plan, limit=PASS_ITEMS)
    given = {(rating.rater_id, rating.item_id): rating for rating in build.golden.ratings if rating.aspect == ASPECT}
    raters = sorted({rater for rater, _ in given})
    for name, who in zip(PEOPLE, raters, strict=True):
        mine = build.as_(name)
        assigned = projects.join_pass(mine, DEMO_PROJECT, pass_id).assigned
        for item_id in assigned if name != CHI else assigned[:-LEFT_OPEN]:
            said = given[who, item_id]
            projects.save_label(
                mine,
                DEMO_PROJECT,
                pass_id,
                item_id,
                {ASPECT: said.value},
                comment=said.comment,
                form=f"{who}-{item_id}",
            )
    for _, item_id in list(projects.pass_summary(build.as_(ADA), DEMO_PROJECT, pass_id).queue)[:2]:
        middle = sorted(given[annotator, item_id].value for annotator in raters)[1]
        projects.adjudicate(
            *(build.as_(ADA), DEMO_PROJECT, pass_id, item_id),
            aspect=ASPECT,
            value=middle,
            reason="The median of the three labels.",
            form=f"decided-{item_id}",
        )


def _calibrate(build: Build) -> None:
    """The simulated reader; its judge is taken into use."""
    request = CalibrationRequest(*build.where, SPEC, CHOSEN, DEFINITION)
    build.run_id = build.done(projects.start_run(build.as_(ADA), build.settings, request))
    build.best = projects.load_calibration(build.store, build.run_id).chosen[0].criteria_id
    build.decide(ADA, 1, "current", "A first judge. It agrees with the raters far better than the baseline.")


def _gaps(build: Build) -> list[ItemScore]:
    """Calibration items, the most misaligned first."""
    scores = projects.item_scores(build.store, build.run_id, build.best)
    return sorted((item for item in scores if item.gap is not None), key=lambda item: -abs(item.gap or 0.0))


def _triage(build: Build) -> None:
    """The most misaligned items looked at, the first four picked for a round.

    Where the raters disagree by two points or more, the label is in doubt; else the judge is.
    """
    given = defaultdict[str, list[float]](list)
    for rating in build.golden.ratings:
        given[rating.item_id].append(rating.value)
    gaps = _gaps(build)
    looked = gaps[:6] + sorted(gaps[6:], key=lambda item: -np.ptp(given[item.item_id]))[:2]
    for k, item in enumerate(looked):
        note = "The raters disagree by two points here."
        if k < 6:
            lenient = (item.gap or 0.0) > 0
            note = "The score is too high. Look at how the text begins." if lenient else "The score is too low here."
        verdict: TriageVerdict = "judge wrong" if k < 6 else "ambiguous" if k == 6 else "label wrong"
        projects.save_triage(
            build.as_(PEOPLE[k % 3]),
            DEMO_PROJECT,
            item.item_id,
            TriageRequest(build.golden_id, ASPECT, build.best, verdict, note, picked=k < 4),
            form=f"triage-{item.item_id}",
        )


def _refine(build: Build) -> None:
    """A round on the picked items; its best proposal waits for the review, the second best with it."""
    picks = tuple(item.item_id for item in _gaps(build)[:4])
    request = RoundRequest(*build.where, build.run_id, (build.best,), picks, RoundSettings(sizes=(2, 4), trials=3))
    build.round_id = build.done(projects.start_run(build.as_(BEN), build.settings, request))


def _edit(build: Build) -> None:
    """A person adds the rule that no draft found, and has the text scored beside the old one on calibration items."""
    before = build.store.criteria.get(DEMO_PROJECT, build.best)
    note = "Added the newsroom's first rule: start with the result."
    build.edited = projects.save_edit(
        *(build.as_(CHI), DEMO_PROJECT, build.best, f"{before.text}\n{NEW_RULE}", CHI),
        note=note,
        expected_head=before.head,
    )
    request = RescoreRequest(*build.where, build.edited, build.best, build.run_id)
    build.rescore_id = build.done(projects.start_run(build.as_(CHI), build.settings, request))


def _review(build: Build) -> None:
    """The edit, two proposals and a disagreement are decided on; what else is open stays open for visitors."""
    proposals = [each.criteria.criteria_id for each in projects.list_proposals(build.store, build.round_id)[:2]]
    opened = projects.open_review(build.store, *build.where).points
    points = [point for point in opened if point.subject_id in (build.edited, *proposals) and not point.item_id]
    points += [point for point in opened if point.item_id][:1]
    for name in PEOPLE:
        projects.join_review(build.as_(name), *build.where)
    for point in points:
        votes, verdict, reason = _said(build, point, proposals)
        for name, choice in zip(PEOPLE, votes, strict=True):
            projects.cast_vote(build.as_(name), *build.where, point.key, choice=choice)
        projects.decide_point(build.as_(ADA), *build.where, point.key, verdict=verdict, reason=reason)
    for name in PEOPLE:
        projects.leave_review(build.as_(name), *build.where)


def _said(build: Build, point: Point, proposals: list[str]) -> tuple[tuple[Choice, Choice, Choice], Verdict, str]:
    """Votes and decision on a point: a change is taken when it gained."""
    if point.item_id:
        return ("for", "for", "abstain"), "postponed", "Someone should read the report again before we decide."
    if point.subject_id == build.edited:
        return (
            ("for", "for", "for"),
            "accepted",
            "It raises agreement on the calibration set, and it is a rule of the newsroom.",
        )
    first = point.subject_id == proposals[0]
    listed = projects.list_proposals(build.store, build.round_id)
    proposal = next(each for each in listed if each.criteria.criteria_id == point.subject_id)
    higher = all(gain.value is not None and gain.value > 0 for gain in (proposal.inner, proposal.calibration))
    if higher and first:
        why = "It raises agreement on the calibration set and on new items, though not significantly. It reads well."
        return ("for", "for", "abstain"), "accepted", why
    if first:
        return ("against", "for", "against"), "rejected", "No gain on items that the model didn't see."
    return ("against", "against", "for"), "rejected", "One change at a time, so that we can see its effect."


def _make_judge(build: Build) -> None:
    """The accepted edit becomes the judge: measured, approved by somebody who did not write it, and taken into use."""
    request = VersionRequest(DEMO_PROJECT, ASPECT, (build.edited,))
    note = "Start with the result."
    made = projects.make_version(build.as_(CHI), build.settings, request, origin="review", note=note)
    build.judge_id = build.done(made)
    build.decide(ADA, 2, "approved", "Approved for the demo. It matches the newsroom's own rules.")
    build.decide(BEN, 2, "current", "")


def _calibrate_offline(build: Build) -> None:
    """The judge that needs no model, to be compared with; after the first look at held-out items was a test."""
    build.done(
        projects.start_run(
            build.as_(BEN), build.settings, CalibrationRequest(*build.where, "offline", OFFLINE, DEFINITION)
        )
    )
    build.decide(BEN, 3, "retired", "Kept for comparison: it counts words and doesn't read.")


def _calibrate_with_reasons(build: Build) -> None:
    """The same search once more, shown why raters rated as they did."""
    build.done(
        projects.start_run(
            build.as_(ADA),
            build.settings,
            CalibrationRequest(*build.where, SPEC, replace(CHOSEN, reasons=True), DEFINITION),
        )
    )
    build.decide(BEN, 4, "approved", "It found the rule that Chi added by hand.")


def _fuse(build: Build) -> None:
    """Metrics, RepEval evaluated on what the calibration held out, and what needs no language model joined."""
    ada = build.as_(ADA)
    build.done(projects.start_run(ada, build.settings, MetricsRequest(*build.where, METRICS)))
    how = RepEvalSettings(level="sample", reading=Extraction(texts="compared"))
    read = RepEvalRequest(*build.where, settings=how, split_of=build.run_id)
    build.done(projects.start_run(ada, build.settings, read))
    judges = build.store.judges.all(*build.where)
    parts = [
        row.judge_id
        for row in judges
        if row.judge.kind != "no criteria" and row.judge.run_id not in (build.run_id, build.judge_id)
    ]
    settings = FusionSettings(method="nnls", level="sample")
    projects.save_fusion(ada, *build.where, judge_ids=parts, settings=settings, name="Fused: offline, RepEval, metrics")


def _ablate(build: Build) -> None:
    build.done(projects.start_run(build.as_(ADA), build.settings, AblationRequest(*build.where, build.run_id)))


def _recheck(build: Build) -> None:
    """The judge in use on both newer batches, as somebody would who brings in newer labels every few weeks."""
    for name in NEWER:
        request = RecheckRequest(DEMO_PROJECT, build.newer_ids[name], ASPECT, build.judge_id)
        build.done(projects.start_run(build.as_(BEN), build.settings, request))


CHAPTERS: tuple[Callable[[Build], None], ...] = (
    _label,
    _calibrate,
    _triage,
    _refine,
    _edit,
    _review,
    _make_judge,
    _calibrate_offline,
    _fuse,
    _ablate,
    _recheck,
    _calibrate_with_reasons,
)
