"""Rows in a file whose hashes all fit, and that would do harm: refused where they stand, in words."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest

from core import projects
from core.errors import ArchiveError, StoreError
from core.records import Criteria, GoldenSet, Item
from core.settings import Settings
from core.store.store import Store

Tables = dict[str, list[Any]]
Bent = Callable[[Callable[[Tables], None]], bytes]
MADE, MEASURED, DECIDED = "judge version", "judge version measured", "judge version decided"
OTHER_RUN, OTHER_GOLDEN = "r" + "0" * 12, "golden:" + "0" * 64


def _event(tables: Tables, kind: str) -> dict[str, Any]:
    return next(row for row in tables["events"] if row["kind"] == kind)


def _event_with_evidence(tables: Tables) -> dict[str, Any]:
    """What the last decision on a version of the judge says."""
    body: dict[str, Any] = [row for row in tables["events"] if row["kind"] == DECIDED][-1]["body"]
    return body


def _put(table: str, column: str, value: Any, at: int = 0) -> Callable[[Tables], None]:
    return lambda tables: tables[table][at].__setitem__(column, value)


def _in_body(table: str, key: str, value: Any) -> Callable[[Tables], None]:
    return lambda tables: tables[table][0]["body"].__setitem__(key, value)


def _of_event(kind: str, key: str, value: Any) -> Callable[[Tables], None]:
    return lambda tables: _event(tables, kind)["body"].__setitem__(key, value)


def _drop(table: str) -> Callable[[Tables], None]:
    return lambda tables: tables[table].clear()


def _again(table: str) -> Callable[[Tables], None]:
    return lambda tables: tables[table].append(tables[table][0])


HARM: dict[str, tuple[Callable[[Tables], None], str]] = {
    # wrong kinds
    "a column more": (
        lambda t: t["runs"][0].update(worker_id="w"),
        'runs.jsonl, line 1: the row may hold .*; "worker_id" came',
    ),
    "its project": (
        lambda t: t["labels"][0].update(project_id="p1"),
        'the row may hold .*; "project_id" came',
    ),
    "a column less": (lambda t: t["labels"][0].pop("form"), "line 1: the row lacks form"),
    "no row": (lambda t: t["runs"].__setitem__(0, [1]), r"the row must be an object; \[1\] came"),
    "text for a number": (_put("runs", "calls", "5"), 'line 1: calls must be a whole number; "5" came'),
    "true for a number": (_put("runs", "calls", True), "calls must be a whole number; true came"),
    "below zero": (_put("runs", "calls", -1), "calls must be at least 0; -1 came"),
    "too large for Postgres": (
        _put("runs", "attempt", 2**31),
        "attempt must be at most 2,147,483,647; 2147483",
    ),
    "a number for text": (_put("runs", "title", 5), "title must be a text; 5 came"),
    "nothing for text": (_put("runs", "title", None), "title must be a text; null came"),
    "a long key": (_put("runs", "kind", "k" * 41), "kind must be a text of at most 40 characters"),
    "a line end in a key": (
        _put("events", "form", "a\nb"),
        "form must be a name or an id, of characters",
    ),
    "NUL in a key": (_put("runs", "kind", "a\0"), "kind must be a name or an id, of characters"),
    "no moment": (_put("runs", "created_at", 1e300), "created_at must be a moment in seconds since 1970; 1e.300 came"),
    "before time": (_put("events", "created_at", -1.0), "must be a moment in seconds since 1970; -1.0 came"),
    "no base64": (_put("run_scores", "blob", "????"), "is not base64"),
    "half a float": (_put("run_scores", "blob", base64.b64encode(bytes(12)).decode()), "1.5 scores for 3 items"),
    "scores of other items": (_put("run_scores", "blob", base64.b64encode(bytes(32)).decode()), "4 scores for 3 items"),
    "usage": (_put("runs", "usage", {"requests": "many"}), 'usage.requests must be a whole number; "many" came'),
    "a request of another shape": (lambda t: t["runs"][0]["request"].pop("aspect"), "the request lacks aspect"),
    "a result of another shape": (lambda t: t["run_documents"][0].update(name="result"), "result lacks task, settings"),
    "an array beyond its blob": (
        lambda t: t["judges"][0]["body"]["values"].update(shape=[10**12]),
        "values must be an array within its blob",
    ),
    "an array before its blob": (lambda t: t["judges"][0]["body"]["values"].update(offset=-1), "within its blob"),
    "a judge of another length": (lambda t: t["judges"][0]["body"]["values"].update(shape=[2]), "not those of its"),
    "seen beyond": (lambda t: t["judges"][0]["body"].update(seen=[3]), "the items it has seen"),
    "an alignment": (
        _in_body("criteria_alignments", "statistic", "made up"),
        "body.statistic must be one of pearson, spearman",
    ),
    "a status": (
        _put("runs", "status", "running"),
        'status must be one of done, .*; "running" came',
    ),
    "a reply": (_put("replies", "body", {"text": 5}), "body.text must be a text; 5 came"),
    "replies of a judge": (_put("judges", "replies", {"a": "3"}), "replies.a must be a list"),
    # golden sets
    "a golden set under another hash": (
        lambda t: t["golden_items"][0]["body"].__setitem__(1, "poisoned"),
        "content has another hash",
    ),
    "an item that is no text": (
        lambda t: t["golden_items"][0]["body"].__setitem__(1, 5),
        r"body\[1\] must be a text; 5",
    ),
    "items out of order": (lambda t: t["golden_items"].reverse(), "do not stand at positions 0 to 2"),
    "a golden set without items": (
        lambda t: t["goldens"].append(t["goldens"][0] | {"golden_id": OTHER_GOLDEN}),
        "not one an item",
    ),
    "an item less": (lambda t: t["golden_items"].pop(), "not one an item"),
    "counts that do not fit": (_put("goldens", "n_items", 999), "counts are not those of its content"),
    "aspects that do not fit": (lambda t: t["goldens"][0]["aspects"]["rows"].clear(), "counts are not those"),
    "ratings by negative codes": (lambda t: t["goldens"][0]["ratings"]["item_id"].__setitem__(0, -2), "counts are not"),
    "ratings beyond": (lambda t: t["goldens"][0]["ratings"]["item_id"].__setitem__(0, 99), "cannot be read"),
    "a kind": (_put("goldens", "kind", "made up"), 'kind must be one of single, .*; "made up" came'),
    "a golden set twice": (_again("goldens"), "stands there twice"),
    "a body that is text": (_put("goldens", "body", '{"a": NaN}'), "body must be an object"),
    "a number for a body": (_put("goldens", "body", "NaN"), 'body must be an object; "NaN" came'),
    "aspects that are no JSON": (
        _put("goldens", "aspects", "{oops"),
        "goldens.jsonl, line 1: aspects: is text that",
    ),
    "a document that is no JSON": (_put("run_documents", "body", "oops"), "line 1: body: is text that is no JSON"),
    "a document nested beyond reason": (_put("run_documents", "body", "[" * 99_999), "text that is no JSON"),
    "a moment beyond any float": (_put("labels", "created_at", 10**400), "created_at must be a number; 1000"),
    # labels
    "a label above its scale": (_put("labels", "value", 99.0), "labels.jsonl, line 1: the label of 'coherence' is 99"),
    "a label below its scale": (_put("labels", "value", -1.0, 1), "line 2: the label of 'coherence' is -1; the scale"),
    "a label of no aspect": (_put("labels", "aspect", "charm"), "nothing in the file says on what scale 'charm'"),
    "a plan that is no plan": (_of_event("labelling pass", "plan", "oops"), 'plan must be an object; "oops" came'),
    "a plan of another shape": (_of_event("labelling pass", "plan", {}), "plan lacks aspects"),
    "a plan that makes no sense": (
        lambda t: _event(t, "labelling pass")["body"]["plan"].update(overlap=9),
        "Each item goes to 1 to 3 raters, not 9",
    ),
    "a golden label off its scale": (
        lambda t: t["goldens"][0]["body"]["aspects"]["coherence"]["values"].__setitem__(0, 99),
        "a label of 'coherence' is 99; the scale is 1-5",
    ),
    "a rating off its scale": (
        lambda t: t["goldens"][0]["ratings"]["value"].__setitem__(0, -3.0),
        "a label of 'coherence' is -3; the scale is 1-5",
    ),
    # references
    "a golden set of the target": (_put("project_goldens", "golden_id", OTHER_GOLDEN), "the golden set 'golden:0"),
    "items of the target": (_put("golden_items", "golden_id", OTHER_GOLDEN), "which is not in the file"),
    "a run on a golden set of the target": (_put("runs", "golden_id", OTHER_GOLDEN), "which is not in the file"),
    "labels on one": (_put("labels", "golden_id", OTHER_GOLDEN), "which is not in the file"),
    "criteria on one": (_put("criteria", "golden_id", OTHER_GOLDEN), "which is not in the file"),
    "documents of a run of the target": (_put("run_documents", "run_id", OTHER_RUN), "the run 'r0000"),
    "scores of one": (_put("run_scores", "run_id", OTHER_RUN), "the run 'r0000"),
    "documents of one": (_put("run_documents", "run_id", OTHER_RUN), "the run 'r0000"),
    "replies of one": (_put("run_replies", "run_id", OTHER_RUN), "the run 'r0000"),
    "alignments of one": (_put("criteria_alignments", "run_id", OTHER_RUN), "the run 'r0000"),
    "a request in another project": (
        lambda t: t["runs"][0]["request"].update(project_id="p123"),
        "request names a project",
    ),
    "a request on another golden set": (
        lambda t: t["runs"][0]["request"].update(golden_id=OTHER_GOLDEN),
        "the golden set 'golden:0000",
    ),
    "a request with another run": (lambda t: t["runs"][0]["request"].update(run_id=OTHER_RUN), "the run 'r0000"),
    "a judge of another run": (_in_body("judges", "run_id", OTHER_RUN), "the run 'r0000"),
    "a pass on another golden set": (
        _of_event("labelling pass", "golden_id", OTHER_GOLDEN),
        "the golden set 'golden:0",
    ),
    "a decision about another run": (
        lambda t: _event(t, DECIDED).update(subject=f"{OTHER_RUN}:c1"),
        "the run 'r0000",
    ),
    "evidence of another run": (
        lambda t: _event_with_evidence(t)["evidence"].update(run_id=OTHER_RUN),
        "the run 'r0000",
    ),
    "labels of another pass": (_put("labels", "pass_id", "l0"), "the labelling pass 'l0'"),
    "labels taken over from one": (_put("labels", "taken_from", "l0"), "the labelling pass 'l0'"),
    "no such item": (_put("labels", "item_id", "elsewhere"), "the item 'elsewhere'"),
    "no such comment": (_of_event("comment settled", "comment", 10**6), "the comment '1000000'"),
    "edits of what is not there": (_put("criteria_edits", "parent_id", "c0"), "the criteria 'c0'"),
    "replies that are not there": (_drop("replies"), "Runs name 1 replies"),
    "runs that are not there": (_drop("runs"), "which is not in the file"),
    "evidence that is none": (
        lambda t: _event_with_evidence(t).update(evidence="oops"),
        'evidence must be an object or null; "oops" came',
    ),
    # ids
    "criteria under another id": (_in_body("criteria", "text", "Reward length."), "the text has the id"),
    "a run twice": (_again("runs"), "stands there twice"),
    "criteria twice": (_again("criteria"), "the criteria 'c.*' stands there twice"),
    "a run by another kind of id": (_put("runs", "run_id", "sample"), "'sample' is no id of a run"),
    # people
    "a role that there is not": (_put("events", "role", "owner"), "'owner' is no role"),
    "events out of order": (lambda t: t["events"].reverse(), "in order of their numbers"),
    "an event that says nothing": (_put("events", "body", [1]), r"body must be an object; \[1\] came"),
    "a comment without words": (lambda t: _event(t, "comment")["body"].pop("text"), "kind 'comment' lacks text"),
    "an event of no kind": (_put("events", "kind", "made up"), "'made up' is no kind of entry; it is one of"),
    "an event that says more": (_of_event("comment", "settled_by", "Bo"), "kind 'comment' has settled_by, which such"),
    "a state that there is not": (_of_event(DECIDED, "state", "frozen"), '"frozen" came'),
    "a version made a draft again": (_of_event(DECIDED, "state", "draft"), "No version is made a draft again"),
    "a decision on a version below 0": (_of_event(DECIDED, "version", -1), "a number from 0 on; -1 came"),
    "a measurement below 0": (_of_event(MEASURED, "version", -3), "a number from 0 on; -3 came"),
    "a version of no criteria": (_of_event(MADE, "criteria_ids", []), "1 to 25 sets of criteria, not 0"),
    "a version with an endless note": (_of_event(MADE, "note", "x" * 301), "300 characters at most; 301 came"),
    "a version by another way": (_of_event(MADE, "origin", "magic"), '"magic" came'),
    "a version of another run": (_of_event(MADE, "base_run", OTHER_RUN), "the run 'r0000"),
    "a version measured by another run": (_of_event(MEASURED, "run_id", OTHER_RUN), "the run 'r0000"),
    "a name that is a book": (_of_event("criteria name", "name", "x" * 300), "A name has 1 to 80 characters"),
    "a name of two lines": (_of_event("criteria name", "name", "a\nb"), "A name is one line"),
    "criteria named elsewhere": (lambda t: _event(t, "criteria name").update(subject=OTHER_RUN), OTHER_RUN),
    "a vote on no point": (_of_event("vote", "point", "first"), 'point must be a whole number; "first" came'),
}


@pytest.mark.parametrize("name", HARM)
def test_refused(name: str, bent: Bent, elsewhere: Store, settings: Settings) -> None:
    change, words = HARM[name]
    with pytest.raises(ArchiveError, match=words):
        projects.import_project(elsewhere, settings, io.BytesIO(bent(change)))
    assert elsewhere.projects.all() == []


def test_an_unchanged_file_passes(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    projects.import_project(elsewhere, settings, io.BytesIO(bent(lambda tables: None)))


@pytest.mark.parametrize("kind", [MEASURED, DECIDED])
@pytest.mark.parametrize("number", [0, 2, 10**9])
def test_what_is_said_of_a_version_that_there_is_not_is_passed_over(
    kind: str, number: int, bent: Bent, elsewhere: Store, settings: Settings
) -> None:
    bad = io.BytesIO(bent(_of_event(kind, "version", number)))
    line = projects.judge_line(elsewhere, projects.import_project(elsewhere, settings, bad).project_id, "coherence")
    (version,) = line.versions
    assert (version.state, version.newest is None) == (("draft", True) if kind == MEASURED else ("proposed", False))
    assert projects.log_lines(elsewhere, elsewhere.projects.all()[0].project_id, line.story), "and the log is read"


def test_rows_with_one_key_are_taken_back(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    for table in ("run_documents", "labels", "judges", "run_scores"):
        with pytest.raises(StoreError, match="same key"):
            projects.import_project(elsewhere, settings, io.BytesIO(bent(_again(table))))
    assert elsewhere.projects.all() == []
    assert elsewhere.runs.all() == []


def test_nobody_reads_a_golden_set_by_knowing_its_hash(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """The target has a golden set of somebody's; a file that only names it must not open it."""
    project_id = elsewhere.projects.add("theirs")
    secret = elsewhere.goldens.add(project_id, GoldenSet("s", "single", (Item("i", "secret"),), {}))

    def name_it(tables: Tables) -> None:
        tables["project_goldens"].append({"golden_id": secret, "name": "mine now", "created_at": 1.0})

    for read in (projects.preview_project, projects.import_project):
        with pytest.raises(ArchiveError, match="which is not in the file"):
            read(elsewhere, settings, io.BytesIO(bent(name_it)))


def test_a_forged_author_is_marked(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """Nothing can stop a file from saying that Ada did it; the log says that this was not seen here."""

    def forge(tables: Tables) -> None:
        for row in tables["events"]:
            row |= {"actor": "Ada", "role": "admin"}

    new = projects.import_project(elsewhere, settings, io.BytesIO(bent(forge))).project_id
    assert {event.role for event in projects.list_events(elsewhere, new)[:-1]} == {"admin (imported)"}


def test_text_of_any_kind_survives(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """Half a surrogate pair, NUL and a form feed: no encoding takes the first as it is."""
    text = "\ud800 \0 \x0c 🙂"

    def write(tables: Tables) -> None:
        tables["runs"][0]["title"] = text
        _event(tables, "comment")["body"]["text"] = text
        tables["run_documents"][0]["body"]["state"]["note"] = text

    new = projects.import_project(elsewhere, settings, io.BytesIO(bent(write))).project_id
    assert elsewhere.runs.all(new)[0].title == text
    criteria_id = Criteria("Reward order.", "coherence").criteria_id
    assert projects.review_of(elsewhere, new, criteria_id).comments[0].text == text
