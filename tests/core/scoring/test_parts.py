"""Scoring in parts as the nodes of a cluster do it, here in one process; places that lie in folders and stores."""

from __future__ import annotations

import errno
import json
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import gethostname
from types import SimpleNamespace
from typing import Any

import pytest

import core
from core.errors import ConcordError, GoldenError, JobError, UsageError
from core.files import json_lines
from core.scoring import on_ray, places, score_file, sizes
from core.scoring.fused import score_fused
from core.scoring.identity import identity_of
from core.scoring.item_file import file_digest, validate_items
from core.scoring.mending import models_behind
from core.scoring.output import Batch, Done, what_differs
from core.scoring.parts import InputFile, Outcome, Part, Plan, Scorer, alike, look_at, open_any, read_parts
from core.scoring.places import Piece, Place, item_files
from tests.core.local_models import save_model
from tests.fake_openai import RunningServer

N = 30


def parts_of(plan: Plan) -> list[Part]:
    path = plan.source.path
    items = validate_items(Path(path))
    file = InputFile(0, Piece(path), items.digest, items.mapping, items.n_items)
    return list(read_parts([file], plan))


def outcome(plan: Plan, part: Part) -> Outcome:
    """What a new actor makes of it."""
    scorer = Scorer(plan)
    scorer.begin(plan, plan.out.stamps())
    return scorer.score(part)


def rows(plan: Plan) -> list[dict[str, Any]]:
    names = sorted(plan.out.stamps())
    if not plan.parquet:
        return [json.loads(line) for name in names for line in plan.out.read(name).splitlines()]
    from pyarrow import BufferReader, parquet

    return [row for name in names for row in parquet.read_table(BufferReader(plan.out.read(name))).to_pylist()]


def why_not_ready(plan: Plan, with_key: Collection[str] = ()) -> str:
    """What a new actor says that shares the output with who asks."""
    scorer = Scorer(plan)
    with plan.out.marked() as mark:
        said = scorer.why_not_ready(with_key, mark)
    if scorer._judge is not None:
        scorer._judge.close()
    return said


@pytest.mark.parametrize("parquet", [False, True])
def test_parts_in_the_order_of_their_names_are_the_verdicts_of_one_process(
    plan: Plan, tmp_path: Path, parquet: bool
) -> None:
    plan = replace(plan, parquet=parquet)
    alone = tmp_path / "alone.jsonl"
    score_file(replace(plan.request, items=Path(plan.source.path), out=alone))
    assert sum(outcome(plan, part).n_items for part in reversed(parts_of(plan))) == N
    expected = [json.loads(line) for line in alone.read_text().splitlines()]
    assert [row["item_id"] for row in rows(plan)] == [row["item_id"] for row in expected]
    assert [row["score"] for row in rows(plan)] == pytest.approx([row["score"] for row in expected], abs=1e-6)


@pytest.mark.parametrize("kind", ["fused", "repeval"])
def test_fused_judges_and_hidden_states_give_the_verdicts_of_one_process(
    plan: Plan, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sizes, "BATCH", plan.size)  # parts are whole batches of the one process
    few, out = tmp_path / "few.jsonl", tmp_path / kind
    few.write_text("\n".join((repository / "sample_data" / "summaries.jsonl").read_text().splitlines()[:48]))
    golden = core.load_golden(few)
    if kind == "fused":
        core.fuse(golden, "relevance", ["offline", "overlap"], method="average", bootstrap=20, out=out)
    else:
        how: dict[str, Any] = {"method": "mean-difference", "pairs": 8, "bootstrap": 20, "tokens": ["mean"]}
        core.fit_repeval(golden, "relevance", out=out, **how)
    file = out / f"{kind}.yaml"
    request = replace(plan.request, judge_file=file)
    there = replace(plan, request=request, judge_file=file.read_bytes(), fused=kind == "fused")
    assert (why_not_ready(there), Scorer(there).lacking()) == ("", {})
    assert sum(outcome(there, part).n_scored for part in parts_of(there)) == N
    alone = replace(request, items=Path(plan.source.path), out=tmp_path / "alone.jsonl")
    (score_fused if kind == "fused" else score_file)(alone)
    expected = [json.loads(line)["score"] for line in alone.out.read_text().splitlines()]
    assert [row["score"] for row in rows(there)] == pytest.approx(expected, abs=1e-6)


def test_a_part_that_is_there_is_not_scored_again_and_a_damaged_one_is(plan: Plan) -> None:
    parts = parts_of(plan)
    for part in parts:
        outcome(plan, part)
    before = rows(plan)
    marked = plan.out.read(parts[0].name).replace(b'"explanation": ""', b'"explanation": "kept"')
    plan.out.write(parts[0].name, marked)
    plan.out.write(parts[1].name, b'{"item_id": "another", "score": 1}\n')
    for part in parts:
        outcome(plan, part)
    assert plan.out.read(parts[0].name) == marked
    assert [row["score"] for row in rows(plan)] == [row["score"] for row in before]


def test_what_an_earlier_call_left_unread_is_asked_once_and_what_this_one_left_is_not(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_of(plan)
    for part in parts[:2]:
        outcome(plan, part)
    unread = json.dumps({"item_id": parts[0].items[3].item_id, "score": None, "reason": "truncated"})
    lines = plan.out.read(parts[0].name).decode().splitlines()
    plan.out.write(parts[0].name, "\n".join([*lines[:3], unread, *lines[4:]]).encode())
    asked = list[int]()
    whole = Scorer._scored

    def counting(self: Scorer, part: Part, fresh: Any) -> Any:
        asked.append(len(fresh))
        lines = [json.loads(line) for batch in whole(self, part, fresh) for line in batch.text.splitlines()]
        text = json_lines([row | {"score": None, "reason": "truncated"} for row in lines])
        return [Batch(text, len(lines), 0, {"truncated": len(lines)})]

    monkeypatch.setattr(Scorer, "_scored", counting)
    later = replace(plan, before={name: plan.out.stamps()[name] for name in (parts[0].name, parts[1].name)})
    first = [outcome(later, part) for part in parts[:3]]
    assert asked == [1, 8]
    assert [(each.n_before, each.n_again, each.n_scored) for each in first] == [(8, 1, 7), (8, 0, 8), (0, 0, 0)]
    per_item = first[0].calls
    assert [each.calls for each in first] == [per_item, 0, 8 * per_item]
    second = [outcome(later, part) for part in parts[:3]]
    assert asked == [1, 8]  # as after a lost node: what this call left unread is not asked again
    assert [each.n_before for each in second] == [8, 8, 0]
    assert second[2].calls == 8 * per_item  # its count was lost with the node


@pytest.mark.parametrize("parquet", [False, True])
def test_what_ends_a_line_elsewhere_ends_none_here(plan: Plan, parquet: bool) -> None:
    """U+2028, U+0085 and the separators of ASCII are line ends to `str.splitlines`, and may stand in an id."""
    plan = replace(plan, parquet=parquet)
    part = parts_of(plan)[0]
    odd = replace(part, rows=Part.plain(replace(i, item_id=f"{i.item_id}\u2028\x85\x1c.") for i in part.items))
    assert outcome(plan, odd).problem == ""
    assert [row["item_id"] for row in rows(plan)] == [item.item_id for item in odd.items]
    assert outcome(plan, odd).n_scored == len(odd.items)  # found again


def test_counted_parts_are_left_out(plan: Plan) -> None:
    names = [part.name for part in parts_of(plan)]
    assert [part.name for part in parts_of(replace(plan, counted=frozenset(names[:2])))] == names[2:]
    gone = InputFile(0, Piece("/nowhere/x.csv"), "sha256:0", None, N)
    assert list(read_parts([gone], replace(plan, counted=frozenset(names)))) == []  # nor is the file opened


def test_a_reader_that_begins_again_does_not_parse_what_is_counted(plan: Plan) -> None:
    path, parts = Path(plan.source.path), parts_of(plan)
    mapping = validate_items(path).mapping
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["{broken\n" for _ in lines[: plan.size]] + lines[plan.size :]))
    again = InputFile(0, Piece(str(path)), file_digest(path), mapping, N)
    assert list(read_parts([again], replace(plan, counted=frozenset([parts[0].name, parts[2].name])))) == [
        parts[1],
        parts[3],
    ]


def test_an_input_that_changed_on_the_way_is_told(plan: Plan) -> None:
    path = Path(plan.source.path)
    file = InputFile(0, Piece(str(path)), validate_items(path).digest, validate_items(path).mapping, N)
    path.write_text(path.read_text() + json.dumps({"item_id": "late", "target": "x", "source": "y"}) + "\n")
    (part,) = read_parts([file], plan)
    assert "has changed while it was scored" in outcome(plan, part).problem


def test_parts_of_another_scoring_are_left_alone_unless_again(plan: Plan) -> None:
    identity = {"input": {"digest": "a"}, "judge": {"digest": "b"}, "options": {}, "part": 8}
    assert on_ray._begin(plan, identity) == {}
    plan.out.write("part-00000-0000000.jsonl", b"{}\n")
    assert list(on_ray._begin(plan, identity)) == ["part-00000-0000000.jsonl"]
    with pytest.raises(JobError, match=r"1 part of another scoring: the judge file has changed.*--again"):
        on_ray._begin(plan, identity | {"judge": {"digest": "c"}})
    again = replace(plan, request=replace(plan.request, again=True))
    assert on_ray._begin(again, identity | {"judge": {"digest": "c"}}) == {}
    assert set(plan.out.stamps()) == {on_ray.MANIFEST}


def test_the_end_of_a_scoring_keeps_why_items_have_no_score(plan: Plan) -> None:
    on_ray._note(plan, {}, Done(items=3, n_scored=1, reasons=Counter({"empty": 2})))
    kept = json.loads(plan.out.read(on_ray.MANIFEST))["done"]
    assert Done.from_json(kept) == Done(items=3, n_scored=1, reasons=Counter({"empty": 2}))


def test_the_options_that_differ_are_named_and_files_of_others_are_never_dropped(plan: Plan) -> None:
    options = {"judge": "hf:m@a1", "explain": False, "coverage": None}
    identity = {"input": {}, "judge": {}, "weights": ["hf:1"], "options": options, "part": 8}
    on_ray._begin(plan, identity)
    plan.out.write("part-00000-0000000.jsonl", b"{}\n")
    other = identity | {"weights": ["hf:2"], "options": options | {"judge": "hf:m@b2", "coverage": 0.9}}
    with pytest.raises(
        JobError,
        match=r"1 part of another scoring: the model of that name has other weights by now, "
        r"and it was started with other options \(judge hf:m@a1, now hf:m@b2; --intervals .* none, now 0\.9\)",
    ):
        on_ray._begin(plan, other)
    plan.out.write("part-00000-of-somebody.parquet", b"x")
    for again in (False, True):
        with pytest.raises(JobError, match=r"1 file of something else \(part-00000-of-somebody\.parquet\)"):
            on_ray._begin(replace(plan, request=replace(plan.request, again=again)), identity)
    assert plan.out.read("part-00000-0000000.jsonl") == b"{}\n"
    assert plan.out.read("part-00000-of-somebody.parquet") == b"x"


def test_a_fused_judge_intervals_and_other_weights_make_another_scoring(
    plan: Plan, tmp_path: Path, repository: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join((repository / "sample_data" / "summaries.jsonl").read_text().splitlines()[:48]))
    core.fuse(core.load_golden(few), "relevance", ["offline", "overlap"], method="average", bootstrap=20, out=tmp_path)
    items = validate_items(Path(plan.source.path))

    def identity(**changes: Any) -> dict[str, Any]:
        request = replace(plan.request, **changes)
        return identity_of(request, items, open_any(request))

    calibrated = identity()
    assert "judge file has changed" in what_differs(calibrated, identity(judge_file=tmp_path / "fused.yaml"))
    sure = what_differs(calibrated, identity(coverage=0.9))
    assert sure == "it was started with other options (--intervals with --coverage none, now 0.9)"
    model = save_model(tmp_path / "model")
    before = identity(judge=f"hf:{model}")
    assert what_differs(before, identity(judge=f"hf:{model}")) == ""
    weights = next(model.glob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert what_differs(before, identity(judge=f"hf:{model}")) == "the model of that name has other weights by now"


def test_ids_that_stand_in_two_files_are_refused(plan: Plan, tmp_path: Path, write_items: Any) -> None:
    other = write_items(tmp_path / "later.jsonl", 3)
    looks = [look_at(plan, Piece(path)) for path in (plan.source.path, str(other))]
    with pytest.raises(GoldenError, match=r"later.jsonl: 3 ids stand in an earlier file"):
        on_ray._check_apart(["items.jsonl", "later.jsonl"], [look.items.hashes for look in looks if look.items])


def looked_at(plan: Plan, path: Path) -> tuple[Any, list[InputFile]]:
    """What a scoring learns of a single file, its pieces looked at by one actor."""
    crew = SimpleNamespace(
        wait_for_all=lambda: None, answers=lambda _, pieces: [look_at(plan, each) for each in pieces]
    )
    return on_ray._Scoring.looked_at(SimpleNamespace(crew=crew, plan=plan), [str(path)])  # type: ignore[arg-type]


def test_a_long_file_is_looked_at_and_read_in_pieces_as_if_it_were_one(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = Path(plan.source.path), [item for part in parts_of(plan) for item in part.items]
    monkeypatch.setattr(places, "PIECE", path.stat().st_size // 5)
    items, files = looked_at(plan, path)
    assert len(files) == 5
    spans = [path.read_bytes()[file.piece.start : file.piece.stop] for file in files]
    assert b"".join(spans) == path.read_bytes()
    assert all(span.endswith(b"\n") for span in spans)
    assert (items.n_items, items.filled) == (N, validate_items(path).filled)
    parts = list(read_parts(files, plan))
    assert sorted(parts, key=lambda part: part.name) == parts
    assert [item for part in parts for item in part.items] == whole


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row | {"more": "A column that comes late."}, ""),
        (lambda row: row | {"item_id": ""}, ""),
        (lambda row: row | {"item_id": "i0"}, "stands in row 1 and again in row 30"),
        (lambda row: {**row, "item_id": "x" * 2_000}, "item_id has 2000 characters.*row 30|row 30.*2000 characters"),
    ],
    ids=["late column", "no id", "an id twice", "long id"],
)
def test_a_file_whose_pieces_cannot_stand_alone_is_looked_at_whole(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, change: Any, said: str
) -> None:
    path = Path(plan.source.path)
    *lines, last = path.read_text().splitlines()
    first = json.loads(lines[0])["item_id"]
    row = change(json.loads(last))
    row |= {"item_id": first} if row["item_id"] == "i0" else {}
    path.write_text("\n".join([*lines, json.dumps(row)]) + "\n")
    monkeypatch.setattr(places, "PIECE", path.stat().st_size // 5)
    pieces = plan.source.pieces(str(path))
    assert not alike([look_at(plan, piece) for piece in pieces])
    if said:
        with pytest.raises(GoldenError, match=said):
            looked_at(plan, path)
        return
    items, files = looked_at(plan, path)
    assert [file.piece for file in files] == [Piece(str(path))]
    assert items.n_items == N


def test_a_piece_that_a_node_cannot_read_does_not_make_it_another_scoring(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(plan.source.path)
    monkeypatch.setattr(places, "PIECE", path.stat().st_size // 5)
    pieces = plan.source.pieces(str(path))
    path.unlink()
    monkeypatch.setattr(Place, "pieces", lambda _self, _path: pieces)
    with pytest.raises(GoldenError, match="is not on the node"):
        looked_at(plan, path)


def test_only_long_files_of_json_lines_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PIECE", 10)
    for name, n in (("a.csv", 1), ("b.jsonl", 3), ("c.jsonl.gz", 1)):
        (tmp_path / name).write_bytes(b'{"a": 12345}\n' * 3)
        assert len(Place(str(tmp_path)).pieces(str(tmp_path / name))) == n
    monkeypatch.setattr(places, "LONGEST_LINE", 2)
    monkeypatch.setattr(places, "LINE", 1)
    assert Place(str(tmp_path)).pieces(str(tmp_path / "b.jsonl"))[0].whole


def test_a_file_that_a_node_cannot_see_is_told_with_its_name(plan: Plan) -> None:
    said = rf"/nowhere/x\.csv is not on the node {re.escape(gethostname())}\. Every node must see the input"
    assert re.match(said, look_at(plan, Piece("/nowhere/x.csv")).problem)
    (part,) = read_parts([InputFile(0, Piece("/nowhere/x.csv"), "sha256:0", None, N)], plan)
    assert re.match(said, part.problem)


def test_an_output_that_a_node_does_not_share_is_told_before_the_start(plan: Plan) -> None:
    with plan.out.marked() as mark:
        elsewhere = replace(plan, out=Place(f"{plan.out.path}-of-this-node"))
        assert "is another folder than on the host that asked" in Scorer(elsewhere).why_not_ready((), mark)
        assert Scorer(plan).why_not_ready((), mark) == ""
    assert plan.out.stamps() == elsewhere.out.stamps() == {}


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_a_folder_and_a_pattern_name_files_in_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.jsonl", "notes.txt", "_scoring.json", "deep/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    def names(address: str) -> list[str]:
        return [str(Path(path).relative_to(tmp_path)) for path in item_files(address)[1]]

    assert names(str(tmp_path)) == ["a.jsonl", "b.csv", "deep/c.parquet"]
    assert names(f"file://{tmp_path}") == ["a.jsonl", "b.csv", "deep/c.parquet"]
    assert names(str(tmp_path / "b.csv")) == ["b.csv"]
    assert names(str(tmp_path / "*.csv")) == names(f"file://{tmp_path}/*.csv") == ["b.csv"]
    with pytest.raises(GoldenError, match="no file of items"):
        item_files(str(tmp_path / "*.xlsx"))


def test_a_place_of_no_known_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"gopher://x/y: is no place that can be read"):
        item_files("gopher://x/y")


@pytest.fixture
def closed_store() -> Iterator[str]:
    """A store that speaks S3 and grants nothing."""

    class Denying(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Denying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_store_without_rights_is_told_in_a_sentence(closed_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    address = f"s3://bucket/items?endpoint_override={closed_store}&scheme=http&region=us-east-1"
    with pytest.raises(JobError, match=r"cannot be written .*rights"):
        Place(address).check_rights()
    with pytest.raises(JobError, match=r"cannot be read .*rights") as denied:
        item_files(address)
    assert "nothing" not in str(denied.value)
    assert "\n" not in str(denied.value)


def test_a_store_without_credentials_is_told_soon(closed_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's library would look for some for 15 minutes."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("GCE_METADATA_ROOT", closed_store)
    monkeypatch.setattr(places, "RETRY_SECONDS", 1)
    with pytest.raises(JobError, match=r"No credentials .* GOOGLE_APPLICATION_CREDENTIALS") as told:
        item_files(f"gs://bucket/items?endpoint_override={closed_store}&scheme=http")
    assert "\n" not in str(told.value)
    with pytest.raises(JobError, match=r"cannot be written \(.*Access Denied.*\)\. Look whether") as told:
        Place(f"gs://anonymous@bucket/out?endpoint_override={closed_store}&scheme=http").check_rights()
    assert "error_info" not in str(told.value)


class Busy(BaseHTTPRequestHandler):
    """A store that is not to be had: every request is worth another try."""

    tries = 0

    def do_HEAD(self) -> None:
        Busy.tries += 1
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_store_that_does_not_answer_is_given_up_after_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of which may take 3 s; an address alone would have it tried ten times, for more than a minute."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"s3://bucket/items?endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    with pytest.raises(JobError, match=r"s3://bucket/items.*cannot be read"):
        item_files(address)
    server.shutdown()
    server.server_close()
    assert Busy.tries == 3


def test_a_store_that_cannot_be_reached_is_no_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region of a bucket is asked for as soon as its address is read."""

    def away(_: str) -> None:
        raise OSError("Could not resolve host")

    monkeypatch.setattr("pyarrow.fs.FileSystem", SimpleNamespace(from_uri=away))
    with pytest.raises(JobError, match=r"cannot be reached \(Could not resolve host\)\. Look whether it is there"):
        item_files("s3://bucket/items")


def test_a_folder_without_rights_is_told_before_the_start(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    assert why_not_ready(plan) == ""
    assert plan.out.stamps() == {}
    said = Scorer(replace(plan, out=Place(str(tmp_path / "taken" / "parts")))).why_not_ready((), "mark")
    assert "taken/parts: cannot be written" in said
    assert "rights of its own environment" in said


def test_a_model_or_a_key_that_a_node_lacks_is_told(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    there = replace(plan, request=replace(plan.request, judge="hf:/nowhere/model"))
    assert "/nowhere/model" in why_not_ready(there)
    asking = replace(plan, request=replace(plan.request, judge="openai:m@http://127.0.0.1:9/v1"))
    assert "OPENAI_API_KEY is not set" in why_not_ready(asking, {asking.request.judge})
    assert "http://127.0.0.1:9/v1 cannot be reached" in why_not_ready(asking)  # and no key is wanted


def test_what_serves_the_model_on_a_node_is_asked_before_the_start(plan: Plan, server: RunningServer) -> None:
    there = replace(plan, request=replace(plan.request, judge=f"openai:fake-judge@{server.base_url}"))
    assert why_not_ready(there) == ""
    assert server.fake.requests == 0  # it lists the model
    other = replace(plan, request=replace(plan.request, judge=f"openai:other@{server.base_url}"))
    assert why_not_ready(other) == ""  # not all list each name that they take
    server.fake.fault = "404"
    assert "(model 'other') answered 404: it knows no such model" in why_not_ready(other)


def test_hosts_share_the_pace_of_an_endpoint_but_not_that_of_a_server_on_each(plan: Plan) -> None:
    for host, concurrency in (("127.0.0.1:9", 64), ("models.example", 16)):
        request = replace(plan.request, judge=f"openai:m@http://{host}/v1")
        (asked,) = models_behind(Scorer(replace(plan, request=request, actors=4)).judge)
        assert asked.provider.concurrency == concurrency  # type: ignore[attr-defined]


def test_a_model_that_is_there_is_ready_and_one_that_nobody_let_in_is_told(
    plan: Plan, tmp_path: Path, judge_file: Path
) -> None:
    model = save_model(tmp_path / "model")
    there = replace(plan, request=replace(plan.request, judge=f"hf:{model}"))
    assert why_not_ready(there) == ""
    named = judge_file.read_text().replace("spec: offline", f"spec: hf:{model}")
    closed = replace(plan, judge_file=named.encode(), request=replace(plan.request, accept_edited=True))
    assert "CONCORD_LOCAL_MODELS" in why_not_ready(closed)


@pytest.mark.parametrize(
    ("spec", "on_gpu", "elsewhere"), [("hf:m", 70, 10), ("openai:m", 10, 10), ("offline", 400, 400)]
)
def test_a_gpu_is_asked_more_at_once_and_parts_hold_whole_batches_of_any_node(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: str, on_gpu: int, elsewhere: int
) -> None:
    named = {"hf:m": f"hf:{save_model(tmp_path / 'model')}", "openai:m": "openai:m@http://127.0.0.1:9/v1"}
    judge = open_any(replace(plan.request, judge=named.get(spec, spec)))
    assert spec == "offline" or judge.calls_an_item == 3
    for device, n in (("cuda", on_gpu), ("cpu", elsewhere)):
        monkeypatch.setattr("core.providers.transformers_local.choose_device", lambda _asked, device=device: device)
        assert sizes.batch_size(judge) == n
        assert sizes.part_size(judge) % sizes.batch_size(judge) == 0
    judge.close()


def test_what_could_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "part" / "in-the-way").mkdir(parents=True)
    with pytest.raises(JobError, match="cannot be written"):
        Place(str(tmp_path)).write("part", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(ConcordError, match=r"the disk is full.*goes on from there"),
        Place(str(tmp_path)).said("written"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
