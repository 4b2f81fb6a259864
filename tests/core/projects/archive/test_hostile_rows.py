"""Rows in a file whose hashes all fit, and that would do harm: refused where they stand, in words."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest

from core import projects
from core.errors import ArchiveError
from core.records import GoldenSet, Item
from core.settings import Settings
from core.store.log import Entry
from core.store.store import Store

Tables = dict[str, list[Any]]
Bent = Callable[[Callable[[Tables], None]], bytes]
MADE, MEASURED, DECIDED = "judge version", "judge version measured", "judge version decided"
OTHER_RUN, OTHER_GOLDEN = "r" + "0" * 12, "golden:" + "0" * 64


def _event(tables: Tables, kind: str) -> dict[str, Any]:
    return next(row for row in tables["events"] if row["kind"] == kind)


def _put(table: str, column: str, value: Any, at: int = 0) -> Callable[[Tables], None]:
    return lambda tables: tables[table][at].__setitem__(column, value)


def _in_body(table: str, key: str, value: Any) -> Callable[[Tables], None]:
    return lambda tables: tables[table][0]["body"].__setitem__(key, value)


def _of_event(kind: str, key: str, value: Any) -> Callable[[Tables], None]:
    return lambda tables: _event(tables, kind)["body"].__setitem__(key, value)


def _again(table: str) -> Callable[[Tables], None]:
    return lambda tables: tables[table].append(tables[table][0])


HARM: dict[str, tuple[Callable[[Tables], None], str]] = {
    # fields that are not of the record
    "a column more": (lambda t: t["runs"][0].update(worker_id="w"), "runs.jsonl, line 1: the column worker_id"),
    "a column less": (lambda t: t["labels"][0].pop("form"), "labels.jsonl, line 1: the column form"),
    "not a row": (lambda t: t["runs"].__setitem__(0, [1]), "runs.jsonl, line 1"),
    "text for a number": (_put("runs", "calls", "5"), "calls has a value of the wrong type, '5'"),
    "too large for Postgres": (_put("runs", "attempt", 2**31), "attempt has"),
    "a moment beyond the calendar": (_put("runs", "created_at", 1e300), "created_at has"),
    "not base64": (_put("run_scores", "blob", "????"), "Only base64 data"),
    "a request of another shape": (lambda t: t["runs"][0]["request"].pop("aspect"), "aspect: "),
    "a document that is not JSON": (_put("run_documents", "body", "oops"), "body has"),
    "a document nested beyond reason": (_put("run_documents", "body", "[" * 99_999), "run_documents.jsonl, line 1"),
    "a reply": (_put("run_replies", "body", {"text": 5}), "body isn't a reply"),
    "a plan that makes no sense": (
        lambda t: _event(t, "labelling pass")["body"]["plan"].update(overlap=9),
        "A pass can have 1 to 100 raters",
    ),
    "an entry of no kind": (_put("events", "kind", "made up"), "'made up'"),
    "a role that does not exist": (_put("events", "role", "owner"), "or role 'owner'"),
    # arrays
    "an array beyond its blob": (
        lambda t: t["judges"][0]["body"]["values"].update(shape=[10**12]),
        "the stored bytes",
    ),
    "a judge of another length": (lambda t: t["judges"][0]["body"]["values"].update(shape=[2]), "a judge.s scores"),
    "items seen beyond": (lambda t: t["judges"][0]["body"].update(seen=[3]), "labels it has seen"),
    "scores of other items": (
        _put("run_scores", "blob", base64.b64encode(bytes(32)).decode()),
        "cover 4 items, but the golden set has 3",
    ),
    # golden sets
    "a golden set under another hash": (
        lambda t: t["golden_items"][0]["body"].__setitem__(1, "poisoned"),
        "content of a golden set doesn't match its hash",
    ),
    "a golden set without items": (
        lambda t: t["goldens"].append(t["goldens"][0] | {"golden_id": OTHER_GOLDEN}),
        "Golden set .* not found",
    ),
    "an item less": (lambda t: t["golden_items"].pop(), "don't have one value per item"),
    "counts that do not fit": (_put("goldens", "n_items", 999), "don't match its content"),
    # what the file does not bring
    "a golden set of the target": (_put("project_goldens", "golden_id", OTHER_GOLDEN), "the file doesn't contain"),
    "items of the target": (_put("golden_items", "golden_id", OTHER_GOLDEN), "the file doesn't contain"),
    **{
        f"{table} on a golden set of the target": (_put(table, "golden_id", OTHER_GOLDEN), "the file doesn't contain")
        for table in ("runs", "labels", "criteria", "judges")
    },
    **{
        f"{table} of a run of the target": (_put(table, "run_id", OTHER_RUN), "the file doesn't contain")
        for table in ("run_documents", "run_scores", "run_replies", "criteria_alignments")
    },
    "a request on another golden set": (
        lambda t: t["runs"][0]["request"].update(golden_id=OTHER_GOLDEN),
        "golden:0000.*the file doesn't contain",
    ),
    "a request with another run": (lambda t: t["runs"][0]["request"].update(run_id=OTHER_RUN), OTHER_RUN),
    "measured by another run": (_of_event(MEASURED, "run_id", OTHER_RUN), OTHER_RUN),
    "an item of another set": (_put("labels", "item_id", "elsewhere"), "'elsewhere', an item that"),
    # ids
    "criteria under another id": (_in_body("criteria", "text", "Reward length."), "not found in project"),
    "a run by another kind of id": (_put("runs", "run_id", "sample"), "the file doesn't contain"),
}


@pytest.mark.parametrize("name", HARM)
def test_refused(name: str, bent: Bent, elsewhere: Store, settings: Settings) -> None:
    change, words = HARM[name]
    with pytest.raises(ArchiveError, match=f"(?s){words}"):
        projects.import_project(elsewhere, settings, io.BytesIO(bent(change)))
    assert elsewhere.projects.all() == []


def test_an_unchanged_file_passes(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    projects.import_project(elsewhere, settings, io.BytesIO(bent(lambda tables: None)))


@pytest.mark.parametrize(("kind", "state"), [(MEASURED, "draft"), (DECIDED, "proposed")])
def test_what_is_said_of_a_version_that_there_is_not_is_passed_over(
    kind: str, state: str, bent: Bent, elsewhere: Store, settings: Settings
) -> None:
    for number in (0, 10**9):
        bad = io.BytesIO(bent(_of_event(kind, "version", number)))
        project_id = projects.import_project(elsewhere, settings, bad).project_id
        (version,) = projects.judge_line(elsewhere, project_id, "coherence").versions
        assert version.state == state


def test_rows_with_one_key_are_taken_back(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    for table in ("run_documents", "labels", "runs"):
        with pytest.raises(ArchiveError, match="same key"):
            projects.import_project(elsewhere, settings, io.BytesIO(bent(_again(table))))
    assert elsewhere.projects.all() == []
    assert elsewhere.runs.all() == []


def test_nobody_reads_a_golden_set_by_knowing_its_hash(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """The target has a golden set of somebody's; a file that only names it must not open it."""
    project_id = elsewhere.projects.add("theirs")
    secret = elsewhere.goldens.add(project_id, GoldenSet("s", "single", (Item("i", "secret"),), {}))

    def name_it(tables: Tables) -> None:
        tables["project_goldens"].append({"golden_id": secret, "name": "mine now", "created_at": 1.0})

    with pytest.raises(ArchiveError, match="the file doesn't contain"):
        projects.import_project(elsewhere, settings, io.BytesIO(bent(name_it)))


def test_nobody_adds_to_a_golden_set_that_is_here(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """The target has the file's golden set; a row more under its hash must not become its item."""
    new = projects.import_project(elsewhere, settings, io.BytesIO(bent(lambda tables: None))).project_id
    (golden,) = elsewhere.goldens.all(new)

    def add_to_it(tables: Tables) -> None:
        tables["golden_items"].append(tables["golden_items"][0] | {"position": 3})

    with pytest.raises(ArchiveError, match="same id"):
        projects.import_project(elsewhere, settings, io.BytesIO(bent(add_to_it)))
    assert elsewhere.goldens.verified(golden.golden_id).digest == golden.golden_id
    assert len(elsewhere.projects.all()) == 1


def test_a_forged_author_is_marked(bent: Bent, elsewhere: Store, settings: Settings) -> None:
    """Nothing can stop a file from saying that Ada did it; the log says that this was not seen here."""

    def forge(tables: Tables) -> None:
        for row in tables["events"]:
            row |= {"actor": "Ada", "role": "admin"}

    new = projects.import_project(elsewhere, settings, io.BytesIO(bent(forge))).project_id
    assert {event.role for event in elsewhere.events.all(new, Entry)[:-1]} == {"admin (imported)"}
