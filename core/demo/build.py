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
from core.kept import DEMO_PROJECT
from core.people import Actor
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
    made = Build(store, settings, load_golden(recorded.GOLDEN))
    for name in reversed(NEWER):  # screens open on the set that came last, and that is to be the calibrated one
        newer = load_golden(recorded.SAMPLES / "newer" / f"{name}.jsonl")
        made.newer_ids[name] = projects.add_golden(made.as_(ADA), DEMO_PROJECT, newer)
    made.golden_id = projects.add_golden(made.as_(ADA), DEMO_PROJECT, made.golden)
    chapters = (
        *(_label, _calibrate, _second_aspect, _replay, _triage, _refine, _edit, _meet, _sign_off, _ablate),
        _recheck,
    )
    for chapter in chapters:
        say(chapter.__name__.strip("_"))
        chapter(made)


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


def _label(made: Build) -> None:
    """A blind pass of three over some items; the third has a few left, and where they part a person has decided."""
    scale = Scale(1, 5, 1)
    request = PassRequest(
        *(DEMO_PROJECT, made.golden_id, "Second look at 24 summaries (simulated labels)"),
        aspects=(LabelAspect(recorded.ASPECT, scale, recorded.DEFINITION),),
        shared=PASS_ITEMS,
        limit=PASS_ITEMS,
        instructions="Read the article first. Look for statements that it does not make: figures, names, causes.\n"
        "This pass is part of the demo: its labels were simulated, no person gave them.",
    )
    pass_id = projects.start_pass(made.as_(ADA), request)
    given = {(one.rater_id, one.item_id): one.value for one in made.golden.ratings if one.aspect == recorded.ASPECT}
    raters = sorted({rater for rater, _ in given})
    for name, annotator in zip(PEOPLE, raters, strict=True):
        mine = made.as_(name)
        assigned = projects.join_pass(mine, DEMO_PROJECT, pass_id).assigned
        for item_id in assigned if name != CHI else assigned[:-LEFT_OPEN]:
            values = {recorded.ASPECT: given[annotator, item_id]}
            projects.save_label(mine, DEMO_PROJECT, pass_id, item_id, values, form=f"{annotator}-{item_id}")
    for parting in projects.pass_summary(made.as_(ADA), DEMO_PROJECT, pass_id).queue[:2]:
        middle = sorted(given[annotator, parting.item_id] for annotator in raters)[1]
        projects.adjudicate(
            *(made.as_(ADA), DEMO_PROJECT, pass_id, parting.item_id),
            aspect=recorded.ASPECT,
            value=middle,
            reason="Taken: the middle of the three labels.",
            form=f"decided-{parting.item_id}",
        )


def _calibrate(made: Build) -> None:
    request = CalibrationRequest(*made.where, "offline", OFFLINE, recorded.DEFINITION)
    made.run_id = made.done(projects.start_calibration(made.as_(ADA), made.settings, request))
    made.best = projects.load_calibration(made.store, made.run_id).chosen[0].criteria_id


def _replay(made: Build) -> None:
    """The recorded calibration of a language model."""
    mine = made.as_(BEN)
    made.recorded_id = made.done(projects.start_calibration(mine, made.settings, replay_request(made.golden_id)))
    for one in projects.list_judges(made.store, *made.where):
        if one.judge.run_id == made.recorded_id:
            what = "no criteria" if one.judge.kind == "no criteria" else "calibrated"
            projects.rename_judge(mine, DEMO_PROJECT, one.judge_id, f"LLM (recorded) · {what}")


def _gaps(made: Build) -> list[ItemScore]:
    """Calibration items, the most misaligned first."""
    scores = projects.item_scores(made.store, made.run_id, made.best)
    return sorted((one for one in scores if one.gap is not None), key=lambda one: -abs(one.gap or 0.0))


def _triage(made: Build) -> None:
    """The most misaligned items looked at, the first four picked for a round, and two whose label is in doubt.

    What is noted is what the language model wrote of the item.
    """
    written = recorded.read_written()

    def above_label(one: ItemScore) -> float:
        return float(written.ratings["none", one.item_id]) - one.label

    gaps = _gaps(made)
    looked = gaps[:6] + [one for one in sorted(gaps, key=above_label) if one not in gaps[:6]][:2]
    for k, one in enumerate(looked):
        doubt = above_label(one)
        verdict: TriageVerdict = "label wrong" if doubt < -1.5 else "ambiguous" if abs(doubt) > 1 else "judge wrong"
        projects.save_triage(
            *(made.as_(PEOPLE[k % 3]), DEMO_PROJECT, made.golden_id),
            aspect=recorded.ASPECT,
            item_id=one.item_id,
            subject_id=made.best,
            verdict=verdict,
            note=written.reasons[one.item_id],
            picked=k < 4,
            form=f"triage-{one.item_id}",
        )


def _refine(made: Build) -> None:
    """A round on the picked items; its best proposal waits for the meeting, the second best with it."""
    picks = tuple(one.item_id for one in _gaps(made)[:4])
    parents = tuple(one.criteria_id for one in projects.load_calibration(made.store, made.run_id).chosen[:2])
    request = RoundRequest(*made.where, made.run_id, parents, picks, RoundSettings(sizes=(2, 4), trials=2))
    made.round_id = made.done(projects.start_round(made.as_(BEN), made.settings, request))


def _edit(made: Build) -> None:
    """A person puts another rule for one that makes no sense to them, and has it scored beside the old text."""
    before = projects.get_criteria(made.store, DEMO_PROJECT, made.best)
    if ODD_RULE not in before.text:
        raise JobError(f"The best criteria of the demo no longer hold the rule that Chi takes out: {before.text}")
    ask = "What has this to do with consistency?"
    projects.add_comment(made.as_(ADA), DEMO_PROJECT, made.best, f"“{ODD_RULE}”: {ask}", line=1)
    text = before.text.replace(ODD_RULE, NEW_RULE)
    note = "Took out a rule about style; consistency asks for what the source says."
    edited = projects.save_edit(made.as_(CHI), DEMO_PROJECT, made.best, text, CHI, note=note, expected_head=before.head)
    request = RescoreRequest(*made.where, edited, made.best, made.run_id)
    made.done(projects.start_rescore(made.as_(CHI), made.settings, request))
    projects.add_comment(
        made.as_(BEN), DEMO_PROJECT, edited, "Makes more sense to a reader. Do the numbers bear it out?"
    )
    asked = projects.review_of(made.store, DEMO_PROJECT, made.best).comments[0]
    projects.settle_comment(made.as_(CHI), DEMO_PROJECT, made.best, asked.number)
    projects.set_state(made.as_(CHI), DEMO_PROJECT, edited, "proposed", reason="To be talked about next time.", seen=0)


def _meet(made: Build) -> None:
    """Two proposals, a disagreement and a question: votes by name, decisions with reasons; then it is closed."""
    proposals = projects.list_proposals(made.store, made.round_id)[:2]
    suggested = projects.suggest_agenda(made.store, *made.where)
    agenda = [one for one in suggested if one.subject_id in {each.criteria.criteria_id for each in proposals}]
    agenda += [one for one in suggested if one.kind == "disagreement"][:1]
    agenda.append(AgendaItem("question", "Is one wrong figure as bad as an invented sentence?", text="Open for all."))
    ada = made.as_(ADA)
    about = {"golden_id": made.golden_id, "aspect": recorded.ASPECT}
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
    one = next(each for each in proposals if each.criteria.criteria_id == item.subject_id)
    first = one is proposals[0]
    higher = all(found.value is not None and found.value > 0 for found in (one.inner, one.calibration))
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


def _sign_off(made: Build) -> None:
    """The criteria of both final judges are proposed by one and approved by another, on the calibration's result."""
    for run_id in (made.run_id, made.recorded_id):
        for one in projects.load_calibration(made.store, run_id).chosen:
            for name, state, reason in SIGNED:
                about = (made.as_(name), DEMO_PROJECT, one.criteria_id)
                seen = projects.review_of(*about).seen
                projects.set_state(*about, state, reason=reason, seen=seen, run_id=run_id)


def _second_aspect(made: Build) -> None:
    """Relevance: metrics, a calibration of its own, RepEval told on what it held out, and all of them fused."""
    ada, where = made.as_(ADA), (DEMO_PROJECT, made.golden_id, SECOND)
    made.done(projects.start_metrics(ada, made.settings, MetricsRequest(*where, METRICS)))
    request = CalibrationRequest(*where, "offline", OFFLINE, SECOND_DEFINITION)
    run_id = made.done(projects.start_calibration(ada, made.settings, request))
    made.second_id = run_id
    read = RepEvalRequest(*where, settings=RepEvalSettings(level="sample"), split_of=run_id)
    made.done(projects.start_repeval(ada, made.settings, read))
    parts = [one.judge_id for one in projects.list_judges(made.store, *where) if one.judge.kind != "no criteria"]
    settings = StackSettings(method="nnls", level="sample")
    projects.keep_fusion(ada, *where, judge_ids=parts, settings=settings, name="Fused: offline, RepEval, metrics")


def _ablate(made: Build) -> None:
    request = AblationRequest(*made.where, made.run_id, with_steps=False)
    made.done(projects.start_ablation(made.as_(ADA), made.settings, request))


def _recheck(made: Build) -> None:
    """Both offline judges on both newer batches, as somebody would who brings in newer labels every few weeks."""
    for aspect, run_id in ((recorded.ASPECT, made.run_id), (SECOND, made.second_id)):
        for name in NEWER:
            request = RecheckRequest(DEMO_PROJECT, made.newer_ids[name], aspect, run_id)
            made.done(projects.start_recheck(made.as_(BEN), made.settings, request))
