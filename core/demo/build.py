"""Makes the demo project by the very calls that the screens make; nothing in it is written by hand but what people say.

The people are invented and called so; what they say in the labelling pass is what the simulated raters of
`sample_data` gave.  Every number comes out of a run on this machine, worked off here step by step as a worker would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from core import projects
from core.calibration.settings import CalibrationSettings, RoundSettings
from core.data import load_golden
from core.demo import recorded
from core.errors import JobError
from core.fusion.stack import StackSettings
from core.jobs.queue import RunProgress
from core.people import Actor
from core.project_records import DEMO_PROJECT
from core.projects.analyses import AblationRequest, RecheckRequest
from core.projects.calibration import CalibrationRequest
from core.projects.demo import DEMO_NAME, replay_request
from core.projects.items import ItemScore
from core.projects.judges import MetricsRequest
from core.projects.kinds import do_run
from core.projects.repeval import RepEvalRequest
from core.projects.rescore import RescoreRequest
from core.projects.rounds import ListedProposal, RoundRequest
from core.records import GoldenSet, Scale
from core.repeval.records import RepEvalSettings
from core.review.criteria import ReviewState
from core.review.meetings import AgendaItem, Choice, Verdict
from core.review.passes import PassRequest
from core.review.plan import LabelAspect
from core.review.triage import TriageVerdict
from core.settings import Settings
from core.store.store import Store

T = TypeVar("T")
ADA, BEN, CHI = "Ada (demo)", "Ben (demo)", "Chi (demo)"
PEOPLE = (ADA, BEN, CHI)
WORKER = "demo"
OFFLINE = CalibrationSettings(rounds=2)
PASS_ITEMS, LEFT_OPEN = 24, 3
ODD_RULE = "Strongly reward texts that vary their words and openings."
NEW_RULE = "How the text is worded does not count."
"""What the person takes out, and puts in; the offline judge's drafts are sentences from a fixed list."""
METRICS = ("overlap", "similarity")
NEWER = ("summaries_second_batch", "summaries_new_systems")
"""Golden sets of sample_data/newer, in the order in which the judges are rechecked on them."""
SECOND, SECOND_DEFINITION = "relevance", "The text tells the main points of its source, and nothing beside them."
"""An aspect on which what costs nothing does well, so that a fusion has something to join."""


@dataclass
class Build:
    """The project as it grows; what a chapter leaves for the next."""

    store: Store
    settings: Settings
    golden: GoldenSet
    golden_id: str = ""
    newer_ids: dict[str, str] = field(default_factory=dict)
    run_id: str = ""
    second_id: str = ""
    recorded_id: str = ""
    best: str = ""
    round_id: str = ""

    @property
    def where(self) -> tuple[str, str, str]:
        """Project, golden set and aspect, as requests begin."""
        return DEMO_PROJECT, self.golden_id, recorded.ASPECT

    def as_(self, name: str) -> Store:
        return self.store.acting(Actor(name))

    def done(self, run_id: str) -> str:
        """Work the run off here; JobError unless it ends well."""
        status = do_here(self.store, self.settings, run_id)
        if status != "done":
            raise JobError(f"Run {run_id} of the demo ended as {status}.")
        return run_id


def build_demo(store: Store, settings: Settings, say: Callable[[str], object] = lambda _: None) -> None:
    """Fill the empty `store` with the demo project; takes about two minutes, most of it the replay's pace."""
    store.projects.add(DEMO_NAME, DEMO_PROJECT)
    build = Build(store, settings, load_golden(recorded.GOLDEN))
    for name in reversed(NEWER):  # screens open on the set that came last, and that is to be the calibrated one
        newer = load_golden(recorded.SAMPLES / "newer" / f"{name}.jsonl")
        build.newer_ids[name] = projects.add_golden(build.as_(ADA), DEMO_PROJECT, newer)
    build.golden_id = projects.add_golden(build.as_(ADA), DEMO_PROJECT, build.golden)
    chapters = (
        *(_label, _calibrate, _second_aspect, _replay, _triage, _refine, _edit, _meet, _sign_off, _ablate),
        _recheck,
    )
    for chapter in chapters:
        say(chapter.__name__.strip("_"))
        chapter(build)


def do_here(store: Store, settings: Settings, run_id: str) -> str:
    """Do a queued run in this process, with its snapshots; the status it ends with."""
    attempt = store.runs.get(run_id).attempt
    if not store.runs.claim(run_id, attempt, WORKER):
        raise JobError(f"Run {run_id} does not wait to be done.")
    run = store.runs.get(run_id)
    with RunProgress(store, run, threading.Event()) as progress:
        status = do_run(store, settings, run, progress)
    store.runs.finish(run_id, attempt, status)
    return status


# ── the chapters ─────────────────────────────────────────────────────────────────────────────────────────────


def _label(build: Build) -> None:
    """A blind pass of three over some items; the third has a few left, and where they part a person has decided."""
    scale = Scale(1, 5, 1)
    request = PassRequest(
        *(DEMO_PROJECT, build.golden_id, "Second look at 24 summaries (simulated labels)"),
        aspects=(LabelAspect(recorded.ASPECT, scale, recorded.DEFINITION),),
        shared=PASS_ITEMS,
        limit=PASS_ITEMS,
        instructions="Read the article first. Look for statements that it does not make: figures, names, causes.\n"
        "This pass is part of the demo: its labels were simulated, no person gave them.",
    )
    pass_id = projects.start_pass(build.as_(ADA), request)
    given = {
        (rating.rater_id, rating.item_id): rating.value
        for rating in build.golden.ratings
        if rating.aspect == recorded.ASPECT
    }
    raters = sorted({rater for rater, _ in given})
    for name, annotator in zip(PEOPLE, raters, strict=True):
        mine = build.as_(name)
        assigned = projects.join_pass(mine, DEMO_PROJECT, pass_id).assigned
        for item_id in assigned if name != CHI else assigned[:-LEFT_OPEN]:
            values = {recorded.ASPECT: given[annotator, item_id]}
            projects.save_label(mine, DEMO_PROJECT, pass_id, item_id, values, form=f"{annotator}-{item_id}")
    for parting in projects.pass_summary(build.as_(ADA), DEMO_PROJECT, pass_id).queue[:2]:
        middle = sorted(given[annotator, parting.item_id] for annotator in raters)[1]
        projects.adjudicate(
            *(build.as_(ADA), DEMO_PROJECT, pass_id, parting.item_id),
            aspect=recorded.ASPECT,
            value=middle,
            reason="Taken: the middle of the three labels.",
            form=f"decided-{parting.item_id}",
        )


def _calibrate(build: Build) -> None:
    request = CalibrationRequest(*build.where, "offline", OFFLINE, recorded.DEFINITION)
    build.run_id = build.done(projects.start_calibration(build.as_(ADA), build.settings, request))
    build.best = projects.load_calibration(build.store, build.run_id).chosen[0].criteria_id


def _replay(build: Build) -> None:
    """The recorded calibration of a language model."""
    mine = build.as_(BEN)
    build.recorded_id = build.done(projects.start_calibration(mine, build.settings, replay_request(build.golden_id)))
    for row in projects.list_judges(build.store, *build.where):
        if row.judge.run_id == build.recorded_id:
            what = "no criteria" if row.judge.kind == "no criteria" else "calibrated"
            projects.rename_judge(mine, DEMO_PROJECT, row.judge_id, f"LLM (recorded) · {what}")


def _gaps(build: Build) -> list[ItemScore]:
    """Calibration items, the most misaligned first."""
    scores = projects.item_scores(build.store, build.run_id, build.best)
    return sorted((item for item in scores if item.gap is not None), key=lambda item: -abs(item.gap or 0.0))


def _triage(build: Build) -> None:
    """The most misaligned items looked at, the first four picked for a round, and two whose label is in doubt.

    What is noted is what the language model wrote of the item.
    """
    written = recorded.read_written()

    def above_label(item: ItemScore) -> float:
        return float(written.ratings["none", item.item_id]) - item.label

    gaps = _gaps(build)
    looked = gaps[:6] + [item for item in sorted(gaps, key=above_label) if item not in gaps[:6]][:2]
    for k, item in enumerate(looked):
        doubt = above_label(item)
        verdict: TriageVerdict = "label wrong" if doubt < -1.5 else "ambiguous" if abs(doubt) > 1 else "judge wrong"
        projects.save_triage(
            *(build.as_(PEOPLE[k % 3]), DEMO_PROJECT, build.golden_id),
            aspect=recorded.ASPECT,
            item_id=item.item_id,
            subject_id=build.best,
            verdict=verdict,
            note=written.reasons[item.item_id],
            picked=k < 4,
            form=f"triage-{item.item_id}",
        )


def _refine(build: Build) -> None:
    """A round on the picked items; its best proposal waits for the meeting, the second best with it."""
    picks = tuple(item.item_id for item in _gaps(build)[:4])
    parents = tuple(
        criteria.criteria_id for criteria in projects.load_calibration(build.store, build.run_id).chosen[:2]
    )
    request = RoundRequest(*build.where, build.run_id, parents, picks, RoundSettings(sizes=(2, 4), trials=2))
    build.round_id = build.done(projects.start_round(build.as_(BEN), build.settings, request))


def _edit(build: Build) -> None:
    """A person puts another rule for one that makes no sense to them, and has it scored beside the old text."""
    before = projects.get_criteria(build.store, DEMO_PROJECT, build.best)
    if ODD_RULE not in before.text:
        raise JobError(f"The best criteria of the demo no longer hold the rule that Chi takes out: {before.text}")
    ask = "What has this to do with consistency?"
    projects.add_comment(build.as_(ADA), DEMO_PROJECT, build.best, f"“{ODD_RULE}”: {ask}", line=1)
    text = before.text.replace(ODD_RULE, NEW_RULE)
    note = "Took out a rule about style; consistency asks for what the source says."
    edited = projects.save_edit(
        build.as_(CHI), DEMO_PROJECT, build.best, text, CHI, note=note, expected_head=before.head
    )
    request = RescoreRequest(*build.where, edited, build.best, build.run_id)
    build.done(projects.start_rescore(build.as_(CHI), build.settings, request))
    projects.add_comment(
        build.as_(BEN), DEMO_PROJECT, edited, "Makes more sense to a reader. Do the numbers bear it out?"
    )
    comment = projects.review_of(build.store, DEMO_PROJECT, build.best).comments[0]
    projects.settle_comment(build.as_(CHI), DEMO_PROJECT, build.best, comment.number)
    projects.set_state(build.as_(CHI), DEMO_PROJECT, edited, "proposed", reason="To be talked about next time.", seen=0)


def _meet(build: Build) -> None:
    """Two proposals, a disagreement and a question: votes by name, decisions with reasons; then it is closed."""
    proposals = projects.list_proposals(build.store, build.round_id)[:2]
    suggested = projects.suggest_agenda(build.store, *build.where)
    agenda = [point for point in suggested if point.subject_id in {each.criteria.criteria_id for each in proposals}]
    agenda += [point for point in suggested if point.kind == "disagreement"][:1]
    agenda.append(AgendaItem("question", "Is one wrong figure as bad as an invented sentence?", text="Open for all."))
    ada = build.as_(ADA)
    about = {"golden_id": build.golden_id, "aspect": recorded.ASPECT}
    meeting = projects.start_meeting(ada, DEMO_PROJECT, "Review of consistency (demo)", agenda=agenda, **about)
    projects.set_participants(ada, DEMO_PROJECT, meeting, PEOPLE)
    for point, item in enumerate(agenda):
        projects.set_current_point(ada, DEMO_PROJECT, meeting, point)
        votes, verdict, reason = _said(item, proposals)
        for name, choice in zip(PEOPLE, votes, strict=True):
            projects.cast_vote(ada, DEMO_PROJECT, meeting, point, voter=name, choice=choice)
        projects.decide(ada, DEMO_PROJECT, meeting, point, verdict=verdict, reason=reason)
    projects.close_meeting(ada, DEMO_PROJECT, meeting)


def _said(item: AgendaItem, proposals: list[ListedProposal]) -> tuple[tuple[Choice, Choice, Choice], Verdict, str]:
    """Votes and decision on a point: a change is taken when it gained, which is what the meeting goes by."""
    if item.kind == "question":
        return ("for", "against", "for"), "accepted", "For a reader both are false; the criteria treat them alike."
    if item.kind == "disagreement":
        return ("for", "for", "abstain"), "postponed", "Somebody reads the article once more before the next meeting."
    proposal = next(each for each in proposals if each.criteria.criteria_id == item.subject_id)
    first = proposal is proposals[0]
    higher = all(gain.value is not None and gain.value > 0 for gain in (proposal.inner, proposal.calibration))
    if higher and first:
        why = "It stands higher on calibration and on the inner fold, though no test shows it yet, and reads well."
        return ("for", "for", "abstain"), "accepted", why
    if first:
        return ("against", "for", "against"), "rejected", "It brings no gain on the inner fold."
    return ("against", "against", "for"), "rejected", "One change at a time, so that we can tell what it did."


SIGNED: tuple[tuple[str, ReviewState, str], ...] = (
    (BEN, "proposed", "Part of the final judge; ready to be looked at."),
    (ADA, "approved", "Approved for the demo. The raters would say it much like this."),
)


def _sign_off(build: Build) -> None:
    """The criteria of both final judges are proposed by one and approved by another, on the calibration's result."""
    for run_id in (build.run_id, build.recorded_id):
        for criteria in projects.load_calibration(build.store, run_id).chosen:
            for name, state, reason in SIGNED:
                about = (build.as_(name), DEMO_PROJECT, criteria.criteria_id)
                seen = projects.review_of(*about).seen
                projects.set_state(*about, state, reason=reason, seen=seen, run_id=run_id)


def _second_aspect(build: Build) -> None:
    """Relevance: metrics, a calibration of its own, RepEval evaluated on what it held out, and all of them fused."""
    ada, where = build.as_(ADA), (DEMO_PROJECT, build.golden_id, SECOND)
    build.done(projects.start_metrics(ada, build.settings, MetricsRequest(*where, METRICS)))
    request = CalibrationRequest(*where, "offline", OFFLINE, SECOND_DEFINITION)
    run_id = build.done(projects.start_calibration(ada, build.settings, request))
    build.second_id = run_id
    read = RepEvalRequest(*where, settings=RepEvalSettings(level="sample"), split_of=run_id)
    build.done(projects.start_repeval(ada, build.settings, read))
    parts = [row.judge_id for row in projects.list_judges(build.store, *where) if row.judge.kind != "no criteria"]
    settings = StackSettings(method="nnls", level="sample")
    projects.keep_fusion(ada, *where, judge_ids=parts, settings=settings, name="Fused: offline, RepEval, metrics")


def _ablate(build: Build) -> None:
    request = AblationRequest(*build.where, build.run_id, with_steps=False)
    build.done(projects.start_ablation(build.as_(ADA), build.settings, request))


def _recheck(build: Build) -> None:
    """Both offline judges on both newer batches, as somebody would who brings in newer labels every few weeks."""
    for aspect, run_id in ((recorded.ASPECT, build.run_id), (SECOND, build.second_id)):
        for name in NEWER:
            request = RecheckRequest(DEMO_PROJECT, build.newer_ids[name], aspect, run_id)
            build.done(projects.start_recheck(build.as_(BEN), build.settings, request))
