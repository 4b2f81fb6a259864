"""Criteria as reviewed documents, triage, openings and meetings, through `core.projects`."""

from __future__ import annotations

import pytest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.errors import AccessError, ConflictError, CriteriaError, NotFoundError, UsageError
from core.people import Actor
from core.project_records import CriteriaAlignment
from core.projects.calibration import CalibrationRequest
from core.projects.items import ItemScore, ScoredItems
from core.projects.triage import TriageCount, count_triage
from core.records import Alignment, AspectLabels, Criteria, GoldenSet, Interval, Item, Scale
from core.review.meetings import AgendaItem
from core.review.triage import Triage
from core.settings import Settings
from core.store.store import Store

ONE, TWO = Criteria("- Be clear.\n- Be <b>brief</b>.", "a"), Criteria("* be CLEAR.\n* Name the source.", "a")
HELD_OUT = Alignment("spearman", "sample", 0.4, 90, interval=Interval(0.3, 0.5))


@pytest.fixture
def golden_id(store: Store, project: str) -> str:
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 4}") for k in range(48))
    labels = tuple(k % 4 + 1.0 for k in range(48))
    golden = GoldenSet("g", "single", items, {"a": AspectLabels("a", Scale(1, 5), labels)})
    return projects.add_golden(store, project, golden)


@pytest.fixture
def project(store: Store) -> str:
    return projects.create_project(store, "p").project_id


@pytest.fixture
def criteria_id(store: Store, project: str, golden_id: str) -> str:
    store.criteria.add(project, golden_id, [ONE, TWO])
    return ONE.criteria_id


@pytest.fixture
def run_id(store: Store, project: str, golden_id: str, criteria_id: str) -> str:
    run_id = store.runs.add(project, golden_id, "calibration", "t", "a", "offline", "{}")
    calibration = Alignment("spearman", "sample", 0.6, 100)
    store.criteria.record(
        project,
        [
            CriteriaAlignment(criteria_id, run_id, "calibration", calibration, "kept"),
            CriteriaAlignment(criteria_id, run_id, "held-out", HELD_OUT, "chosen"),
        ],
    )
    return run_id


def test_comments_by_line(store: Store, project: str, criteria_id: str) -> None:
    ann = store.acting(Actor("Ann", "annotator"))
    projects.add_comment(ann, project, criteria_id, " why <b>? ", line=2, form="f")
    projects.add_comment(ann, project, criteria_id, " why <b>? ", line=2, form="f")
    projects.add_comment(ann, project, criteria_id, "all good")
    first, second = projects.review_of(store, project, criteria_id).comments
    assert (first.line, first.text, first.actor, second.line) == (2, "why <b>?", "Ann", None)
    projects.settle_comment(store.acting(Actor("Bo")), project, criteria_id, first.number)
    projects.settle_comment(store.acting(Actor("Cy")), project, criteria_id, first.number)
    assert [comment.settled_by for comment in projects.review_of(store, project, criteria_id).comments] == ["Bo", ""]
    for text, line, words in ((" ", None, "1 to 5,000"), ("x" * 5001, None, "5,001"), ("x", 3, "have 2 lines")):
        with pytest.raises(UsageError, match=words):
            projects.add_comment(ann, project, criteria_id, text, line=line)
    with pytest.raises(UsageError, match="no such comment"):
        projects.settle_comment(ann, project, criteria_id, 10_000)
    with pytest.raises(NotFoundError):
        projects.add_comment(ann, project, "c-none", "x")


def test_locked_criteria_are_not_edited(store: Store, project: str, criteria_id: str) -> None:
    projects.set_lock(store.acting(Actor("Ann")), project, criteria_id, locked=True)
    with pytest.raises(CriteriaError, match="Ann locked"):
        projects.save_edit(store, project, criteria_id, "other", "Bo")
    projects.set_lock(store, project, criteria_id, locked=False)
    assert projects.save_edit(store, project, criteria_id, "other", "Bo") != criteria_id


def test_merging_and_copying(store: Store, project: str, criteria_id: str, golden_id: str) -> None:
    merged = projects.merge_criteria(store.acting(Actor("Ann")), project, criteria_id, TWO.criteria_id)
    view = projects.get_criteria(store, project, merged)
    assert view.text == "- Be clear.\n- Be <b>brief</b>.\n* Name the source."  # the line both have stands once
    assert (view.parents, view.author) == ((criteria_id, TWO.criteria_id), "Ann")
    other = projects.create_project(store, "q").project_id
    golden = projects.load_golden_set(store, golden_id)
    renamed = {"b": AspectLabels("b", Scale(1, 5), golden.aspects["a"].values)}
    elsewhere = projects.add_golden(store, other, GoldenSet("h", "single", golden.items, renamed))
    copy = projects.copy_criteria(store, project, criteria_id, to_project=other, golden_id=elsewhere, aspect="b")
    copied = projects.get_criteria(store, other, copy)
    assert (copied.text, copied.criteria.aspect, copied.alignments) == (ONE.text, "b", ())
    assert "measure it here" in copied.note
    with pytest.raises(NotFoundError, match="no aspect 'a'"):
        projects.copy_criteria(store, project, criteria_id, to_project=other, golden_id=elsewhere, aspect="a")
    with pytest.raises(CriteriaError, match="cannot be merged"):
        store.criteria.add(project, golden_id, [Criteria("x", "b")])
        projects.merge_criteria(store, project, criteria_id, Criteria("x", "b").criteria_id)


def test_undoing_an_edit_is_one_more_version(store: Store, project: str, criteria_id: str) -> None:
    edited = projects.save_edit(store, project, criteria_id, "worse", "Ann")
    undone = projects.save_edit(store, project, edited, ONE.text, "Ann", note="undo")
    assert undone == criteria_id  # the same text is the same criteria, with all its alignments and comments
    assert projects.get_criteria(store, project, edited).head == criteria_id


def test_triage(store: Store, project: str, golden_id: str) -> None:
    ann = store.acting(Actor("Ann", "annotator"))

    def save(verdict: str, *, picked: bool = False, aspect: str = "a") -> None:
        projects.save_triage(
            ann,
            project,
            golden_id,
            aspect=aspect,
            item_id="i1",
            subject_id="c1",
            verdict=verdict,  # type: ignore[arg-type]
            note=" <i>rule</i> ",
            picked=picked,
        )

    save("ambiguous")
    save("judge wrong", picked=True)
    save("label wrong", aspect="b")
    (triage,) = projects.list_triage(store, project, golden_id, "a").values()
    assert (triage.verdict, triage.picked, triage.note, triage.actor) == ("judge wrong", True, "<i>rule</i>", "Ann")
    with pytest.raises(UsageError, match="'nonsense' came"):
        save("nonsense")


def test_a_pick_needs_no_verdict_and_a_verdict_keeps_the_pick(store: Store, project: str, golden_id: str) -> None:
    where, about = (store, project, golden_id), {"aspect": "a", "item_id": "i1", "subject_id": "c1"}
    projects.save_triage(*where, **about, picked=True)
    assert projects.list_triage(*where, "a")["i1"].picked
    assert projects.suggest_agenda(*where, "a")[0].text == "Somebody picked it for the next round."
    projects.save_triage(*where, **about, verdict="ambiguous", note=" unclear ")
    projects.save_triage(*where, **about, verdict="label wrong")
    triage = projects.list_triage(*where, "a")["i1"]
    assert (triage.verdict, triage.picked, triage.note) == ("label wrong", True, "unclear")


def test_undo_says_again_what_was_said_before(store: Store, project: str, golden_id: str) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    where, about = (project, golden_id), {"aspect": "a", "item_id": "i1"}
    first = projects.save_triage(ann, *where, **about, subject_id="c1", verdict="ambiguous")
    second = projects.save_triage(ann, *where, **about, subject_id="c1", verdict="label wrong")
    assert projects.undo_triage(ann, *where, **about, number=second) > second
    assert projects.list_triage(store, *where, "a")["i1"].verdict == "ambiguous"
    with pytest.raises(ConflictError, match="Ann has said something of this item since; nothing was undone"):
        projects.undo_triage(bo, *where, **about, number=first)
    only = projects.save_triage(ann, *where, aspect="a", item_id="i2", subject_id="c1", verdict="ambiguous")
    projects.undo_triage(ann, *where, aspect="a", item_id="i2", number=only)
    assert "i2" not in projects.list_triage(store, *where, "a"), "nothing was said of it before"
    projects.save_triage(bo, *where, aspect="a", item_id="i2", subject_id="c1", verdict="ambiguous", seen=0)


def test_several_items_at_once_leave_out_what_somebody_else_has_changed(
    store: Store, project: str, golden_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    where, about = (project, golden_id), {"aspect": "a", "subject_id": "c1"}
    projects.save_triage(bo, *where, **about, item_id="i2", verdict="label wrong", note="see page 2")
    seen = {"i1": 0, "i2": 0}
    said = projects.triage_items(ann, *where, **about, seen=seen, verdict="judge wrong", form="one")
    assert list(said.numbers) == ["i1"]
    assert "Bo said 'label wrong' of this item while you were looking" in said.refused["i2"]
    triage = projects.list_triage(store, *where, "a")
    assert {item_id: found.verdict for item_id, found in triage.items()} == {"i1": "judge wrong", "i2": "label wrong"}


def test_counts_are_of_the_items_that_are_listed() -> None:
    """Gaps .9, −.6, .2 and one unread: two are misaligned; one of them has a verdict, the other a pick alone."""
    gaps = {"a": 0.9, "b": -0.6, "c": 0.2, "d": None}
    scored = [ItemScore(name, "s", "m", 3.0, None if gap is None else 3.0, gap) for name, gap in gaps.items()]
    triage = {
        "a": Triage("g", "x", "c1", "judge wrong", subject="a"),
        "b": Triage("g", "x", "c1", "", picked=True, subject="b"),
        "c": Triage("g", "x", "c1", "ambiguous", picked=True, subject="c"),
    }
    assert count_triage(ScoredItems(scored), triage) == TriageCount(
        4, 1, 1, 1, triaged=1, picked=2, picked_misaligned=1
    )


def test_looks_at_held_out_items_are_counted(store: Store, settings: Settings, project: str, golden_id: str) -> None:
    chosen = CalibrationSettings(preset="quick")
    ann = store.acting(Actor("Ann", "reviewer"))
    request = CalibrationRequest(project, golden_id, "a", "offline", chosen)
    projects.start_calibration(ann, settings, request)
    projects.start_calibration(ann, settings, request)
    accesses = projects.list_held_out_accesses(store, project, golden_id, "a")
    assert [access.actor for access in accesses] == ["Ann", "Ann"]
    assert projects.list_held_out_accesses(store, project, golden_id, "b") == []


def test_a_meeting_from_agenda_to_minutes(store: Store, project: str, criteria_id: str, golden_id: str) -> None:
    edit = projects.save_edit(store, project, criteria_id, "- Be clear.\n- Be *short*.", "Ann")
    agenda = (
        AgendaItem("change", "Shorter # wording", subject_id=edit, parent_id=criteria_id),
        AgendaItem("disagreement", "i3", item_id="i3", subject_id=criteria_id, text="judge 1, people 4"),
    )
    ann = store.acting(Actor("Ann", "reviewer"))
    meeting_id = projects.start_meeting(ann, project, "Review <1>", golden_id=golden_id, aspect="a", agenda=agenda)
    where = (project, meeting_id)
    projects.cast_vote(ann, *where, 0, voter="Ann", choice="against")
    projects.cast_vote(ann, *where, 0, voter=" Ann ", choice="for", note="changed my mind")
    projects.cast_vote(ann, *where, 0, voter="Bo", choice="abstain")
    meeting = projects.get_meeting(store, *where)
    assert meeting.points[0].tally == {"for": 1, "against": 0, "abstain": 1}
    assert meeting.first_open == 0
    projects.decide(ann, *where, 0, verdict="accepted", reason="clearer")
    with pytest.raises(ConflictError, match="Ann decided"):
        projects.decide(store.acting(Actor("Bo")), *where, 0, verdict="rejected", reason="no", seen=-1)
    with pytest.raises(UsageError, match="has been decided"):
        projects.cast_vote(ann, *where, 0, voter="Cy", choice="for")
    assert projects.get_meeting(store, *where).first_open == 1
    projects.close_meeting(ann, *where)
    projects.close_meeting(ann, *where)
    with pytest.raises(UsageError, match="over"):
        projects.cast_vote(ann, *where, 1, voter="Cy", choice="for")
    assert [entry.meeting_id for entry in projects.list_meetings(store, project)] == [meeting_id]
    text = projects.meeting_minutes(store, *where)
    assert "# Review \\<1\\>" in text
    assert "~~\\<b\\>brief\\</b\\>.~~**\\*short\\*.**" in text
    assert "Votes: 1 for, 0 against, 1 abstained." in text
    assert "**Accepted** (entered by Ann): clearer" in text
    assert "Not decided." in text
    assert "1 of 2 points decided." in text


def test_a_meeting_that_is_none(store: Store, project: str, golden_id: str) -> None:
    def start(name: str, agenda: tuple[AgendaItem, ...]) -> str:
        return projects.start_meeting(store, project, name, golden_id=golden_id, aspect="a", agenda=agenda)

    with pytest.raises(UsageError, match="something to talk about"):
        start("m", ())
    with pytest.raises(UsageError, match="a name"):
        start(" ", (AgendaItem("question", "q"),))
    meeting_id = start("m", (AgendaItem("question", "q"),))
    with pytest.raises(UsageError, match="no point 2"):
        projects.decide(store, project, meeting_id, 1, verdict="accepted", reason="r")
    with pytest.raises(UsageError, match="needs a reason"):
        projects.decide(store, project, meeting_id, 0, verdict="accepted", reason=" ")
    with pytest.raises(UsageError, match="needs the name"):
        projects.cast_vote(store, project, meeting_id, 0, voter=" ", choice="for")
    with pytest.raises(NotFoundError):
        projects.get_meeting(store, project, "m-none")
    signed_in = store.acting(Actor("Ann", "annotator", "ann@example.org"))
    with pytest.raises(AccessError, match="only vote as Ann"):
        projects.cast_vote(signed_in, project, meeting_id, 0, voter="Bo", choice="for")


def test_a_meeting_keeps_its_place_its_people_and_its_clock(store: Store, project: str, golden_id: str) -> None:
    agenda = tuple(AgendaItem("question", f"q{k}") for k in range(3))
    ann = store.acting(Actor("Ann", "reviewer"))
    meeting_id = projects.start_meeting(ann, project, "m", golden_id=golden_id, aspect="a", agenda=agenda)
    where = (project, meeting_id)
    begun = projects.get_meeting(store, *where)
    assert (begun.at, begun.voters, begun.points[0].opened_at) == (0, (), None)
    projects.set_participants(ann, *where, [" Ann  Lee ", "", "Bo", "Bo"])
    projects.cast_vote(ann, *where, 0, voter="Cy", choice="for")
    projects.set_current_point(ann, *where, 2)
    now = projects.get_meeting(store, *where)
    assert (now.at, now.voters) == (2, ("Ann Lee", "Bo", "Cy"))  # who voted sits at the table too
    assert now.points[2].opened_at is not None
    assert now.points[1].opened_at is None
    assert now.newest > begun.newest
    with pytest.raises(UsageError, match="no point 4"):
        projects.set_current_point(ann, *where, 3)
    with pytest.raises(UsageError, match="80 characters"):
        projects.set_participants(ann, *where, ["x" * 81])
    projects.close_meeting(ann, *where)
    for again in (
        lambda: projects.set_current_point(ann, *where, 0),
        lambda: projects.decide(ann, *where, 0, verdict="accepted", reason="r"),
    ):
        with pytest.raises(UsageError, match="over"):
            again()


def test_an_edit_goes_to_a_meeting_and_the_votes_are_the_reason(
    store: Store, project: str, criteria_id: str, golden_id: str
) -> None:
    ann = store.acting(Actor("Ann", "reviewer"))
    for text in ("Be clear and kind.", "Be clear and short."):
        projects.save_edit(ann, project, criteria_id, text, "Ann", note="plainer")
    agenda = projects.suggest_agenda(store, project, golden_id, "a")
    assert [(point.kind, point.parent_id) for point in agenda] == [("change", criteria_id)] * 2
    assert agenda[0].text == "Ann changed it by hand: plainer"
    meeting_id = projects.start_meeting(ann, project, "m", golden_id=golden_id, aspect="a", agenda=agenda)
    where = (project, meeting_id)
    projects.set_participants(ann, *where, ["Ann", "Bo"])
    for point, (choice, verdict) in enumerate((("for", "accepted"), ("against", "rejected"))):
        for name in ("Ann", "Bo"):
            projects.cast_vote(store.acting(Actor(name, "annotator")), *where, point, voter=name, choice=choice)  # type: ignore[arg-type]
        projects.decide(ann, *where, point, verdict=verdict, reason="")  # type: ignore[arg-type]
    decisions = [point.decision for point in projects.get_meeting(store, *where).points]
    assert [decision.reason for decision in decisions if decision] == [
        "2 for, 0 against, 0 abstained.",
        "0 for, 2 against, 0 abstained.",
    ]
    assert [entry.criteria_id for entry in projects.decided_criteria(store, *where)] == [agenda[0].subject_id]
    assert projects.suggest_agenda(store, project, golden_id, "a") == [], "both were decided on"


def test_what_waits_for_a_meeting(store: Store, project: str, golden_id: str) -> None:
    ann = store.acting(Actor("Ann"))
    for item_id, verdict, picked in (
        ("i1", "judge wrong", True),
        ("i2", "judge wrong", False),  # seen, and nobody wants to talk about it
        ("i3", "ambiguous", False),
        ("i4", "label wrong", False),
    ):
        projects.save_triage(
            ann,
            project,
            golden_id,
            aspect="a",
            item_id=item_id,
            subject_id="c1",
            verdict=verdict,  # type: ignore[arg-type]
            note="<b>",
            picked=picked,
        )
    agenda = projects.suggest_agenda(store, project, golden_id, "a")
    assert [(point.kind, point.item_id) for point in agenda] == [("disagreement", i) for i in ("i1", "i3", "i4")]
    assert agenda[1].title == "Do the criteria need a rule for this?"
    assert agenda[1].text == "Ann called it ambiguous: <b>"
    assert projects.suggest_agenda(store, project, golden_id, "b") == []
