"""Score files on a Ray cluster: Ray Data reads the rows, and an actor on each node scores them in batches.

::

    OUT/_scoring.json         what is scored with what
    OUT/part-<digest>.jsonl   the verdicts of one batch, written whole or not at all

Finished parts are the checkpoint: a second start skips the items that stand in one.  Where a node is lost, Ray does
its batches again on another; a batch holds the same items then, and so its part has the same name.  Nodes read and
write for themselves, so input and output must lie where all of them see it.  Each node has its own keys in its
environment.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.data import Mapping as Columns
from core.data import load_items
from core.data.cells import cell_at
from core.data.check import check_mapping
from core.data.columns import mapping_of
from core.data.item_rows import RowReader
from core.data.sources import FindingLog, first_error, has_errors
from core.errors import ConcordError, GoldenError, JobError, JudgeError, UsageError
from core.files import json_lines
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import LoadedJudge, RowJudge
from core.judge_files.loading import load_judge
from core.progress import SILENT, Progress, Stage
from core.records import Item
from core.scoring import output
from core.scoring.item_file import ItemFile, OnRows, check_needs, columns_behind, look_at, short_hash
from core.scoring.output import UNREAD, Done, verdict_batch
from core.scoring.places import ITEM_FILES, Folder, input_files
from core.scoring.request import ScoredFile, ScoreRequest
from core.scoring.run import scored_batches
from core.scoring.scoring_judges import batch_size, check_unread, identity_of, models_behind, part_size
from core.wording import counted

MANIFEST = "_scoring.json"
HEAD_ROWS = 1_000
"""Rows that the columns' roles are settled by."""
READING = {"num_cpus": 0.1}
"""What a task that reads takes of its node: actors leave that much of every processor."""


@dataclass(frozen=True)
class RayPlan:
    """All that a node must know; `judge_file` is the content of the file that `request` names."""

    request: ScoreRequest
    judge_file: bytes
    mapping: Columns
    out: str
    actors: int


def score_on_ray(
    address: str, request: ScoreRequest, source: str, out: str, *, progress: Progress = SILENT
) -> ScoredFile:
    """Score what `source` names (a file, a folder, a pattern, at a path or URL) into the folder `out`, on a cluster.

    Items are JSON lines or Parquet, verdicts JSON lines.  JobError for a cluster, a place or parts that
    cannot be used; GoldenError for items; JudgeError as the judge raises it on a node.  Finished parts stay.
    """
    started = time.perf_counter()
    if request.budget is not None or request.batch_read:
        raise UsageError("--ray takes no --budget and no batch options.")
    files, folder = input_files(source), Folder(out)
    ray = connected(address)
    progress.publish(Stage("reading", "reading", 0, 0))
    with closing(open_judge(request)) as judge, plain_errors(address):
        rows = _rows(files)
        mapping, items = _look(
            rows,
            files[0],
            request.mapping,
            columns_behind(judge),
            lambda n: progress.publish(Stage("reading", "reading", n, 0)),
        )
        if not isinstance(judge, FusedJudge):
            check_needs(items, judge.needs)
        identity = identity_of(request, items, judge)
        hashes, before = _begin(folder, identity, request)
        needs, n_actors = _actors(ray, judge)
        plan = RayPlan(
            replace(request, out=Path("part.jsonl"), items=Path("items")),
            request.judge_file.read_bytes(),
            mapping,
            out,
            n_actors,
        )
        scored = rows.map_batches(
            Scorer,
            fn_constructor_args=(plan, hashes),
            batch_size=part_size(judge),
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=n_actors),
            **needs,
        )
        done, calls, marks = before, 0, dict.fromkeys(judge.marks)
        for batch in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
            for part in batch.to_pylist():
                if part["problem"]:
                    raise JudgeError(part["problem"])
                done = Done(
                    done.items + part["n_items"],
                    n_scored=done.n_scored + part["n_scored"],
                    reasons=done.reasons + Counter(json.loads(part["reasons"])),
                )
                calls += part["calls"]
                marks |= dict.fromkeys(json.loads(part["marks"]))
                check_unread(request, judge, before, done)
            progress.publish(Stage("scoring", "scoring", done.items, items.n_items))
        if done.items != items.n_items:
            raise JobError(f"{done.items:,} of {items.n_items:,} items came: the input has changed. Add --again.")
    return ScoredFile(
        *(items.n_items, done.items, done.n_scored, before.items, calls, True),
        time.perf_counter() - started,
        tuple(marks),
        dict(done.reasons.most_common()),
        items.findings,
    )


def open_judge(request: ScoreRequest) -> LoadedJudge:
    """Open the judge of a request, a fused one too; errors as the file's reader raises them."""
    judge = load_judge(request.judge_file, judge=request.judge or None, accept_edited=request.accept_edited, alone=True)
    if isinstance(judge, FusedJudge) and (request.judge or request.coverage is not None):
        raise UsageError(f"{request.judge_file}: is a fused judge, which takes no --judge and gives no intervals.")
    return judge


def _actors(ray: Any, judge: LoadedJudge) -> tuple[dict[str, Any], int]:
    """What an actor takes of its node, and how many there are: one a GPU, a processor, or a node that asks."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cpus, gpus = (int(sum(node.get(kind, 0) for node in nodes)) for kind in ("CPU", "GPU"))
    if not cpus:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    asked = [each.provider for each in models_behind(judge)]
    if judge.spec.startswith(("hf:", "repeval:")) or (isinstance(judge, FusedJudge) and judge.runs_models):
        if gpus:
            return {"num_gpus": 1, "num_cpus": 0}, gpus
        smallest = min(node.get("CPU", 1) for node in nodes)
        return {"num_cpus": max(0.5, smallest - 0.2)}, len(nodes)  # no node holds the model twice
    if asked:
        served_here = all(getattr(each, "on_this_host", False) for each in asked)  # by a model server on each node
        with_gpu = sum(node.get("GPU", 0) >= 1 for node in nodes)
        if served_here and with_gpu:
            return {"num_gpus": 0.01, "num_cpus": 0}, with_gpu
        most = min((each.limits.concurrency for each in asked if hasattr(each, "limits")), default=len(nodes))
        return {"num_cpus": 0.5}, min(len(nodes), most)
    return {"num_cpus": 0.8}, cpus


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(files: Sequence[str]) -> Any:
    """The rows of all files as a data set of one column `row`: JSON."""
    import ray.data

    lines = [file for file in files if not file.lower().endswith(".parquet")]
    tables = [file for file in files if file not in lines]
    if packed := [file for file in lines if not file.lower().endswith(ITEM_FILES)]:
        raise UsageError(f"{packed[0]}: on Ray, items are JSON lines or Parquet. Convert the file.")
    found = []
    for names, read, as_row in ((lines, ray.data.read_text, _named_row), (tables, ray.data.read_parquet, _as_json)):
        if names:
            rows = read(names, **READING)
            found.append(rows.map_batches(as_row, batch_format="pyarrow", batch_size=None, **READING))
    return found[0].union(*found[1:]) if len(found) > 1 else found[0]


def _named_row(table: Any) -> Any:
    return table.rename_columns(["row"])  # not of the data set, which would take a whole processor for it


def _as_json(table: Any) -> Any:
    import pyarrow as arrow

    return arrow.table({"row": [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]})


def _look(
    rows: Any, file: str, given: Mapping[str, str], kept: Mapping[str, str], on_rows: OnRows
) -> tuple[Columns, ItemFile]:
    """Look at every row before anything is scored: the columns' roles, how many items there are, ids that differ."""
    paths = [path for path in (*given.values(), *kept.values()) if "." in path or "[" in path]
    head = [_parsed(line["row"], paths) for line in rows.take(HEAD_ROWS)]
    if not head:
        raise GoldenError(f"{file}: no row is there.")
    columns, log = list(dict.fromkeys(name for row in head for name in row)), FindingLog()
    mapping = mapping_of(columns, head, given, kept)
    if mapping.layout == "long" or "item_id" not in mapping.roles:
        raise GoldenError(f"{file}: scoring on Ray needs one row for each item, and a column item_id.")
    check_mapping(mapping, mapping.columns, log, labels_needed=False)
    if has_errors(log.sorted()):
        raise first_error(log.sorted(), file)
    content = 0

    def parsed() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal content
        for batch in rows.iter_batches(batch_size=None, batch_format="pyarrow"):
            for line in batch["row"].to_pylist():
                content = (content + int.from_bytes(short_hash(line), "big")) % 2**64  # whatever the order of the rows
                yield 0, _parsed(line, mapping.roles.values())

    look = look_at(parsed(), mapping, log, on_rows)
    if has_errors(log.sorted()):
        raise first_error(log.sorted(), "a row of the input")
    if (n_twice := look.n_rows - np.unique(look.hashes).size) > 0:
        raise GoldenError(
            f"{file}: {counted(n_twice, 'id')} come twice. Every item needs an id of its own over all files."
        )
    return mapping, ItemFile(Path(file), f"rows:{content:016x}", look.n_rows, look.filled, hashes=look.hashes)


def _parsed(line: str, paths: Collection[str]) -> dict[str, Any]:
    """The row of a line, with a column for each of the `paths` into nested JSON that it has."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise GoldenError(f"A row of the input is not JSON ({str(error)[:80]}): {line[:80]!r}.") from error
    if not isinstance(row, dict):
        raise GoldenError(f"A row of the input is not a JSON object: {line[:80]!r}.")
    nested = {path: cell_at(row, path) for path in paths if path not in row}
    return row | {path: cell for path, cell in nested.items() if cell is not None}


# ── what is there ────────────────────────────────────────────────────────────────────────────────────────────


def _begin(folder: Folder, identity: Mapping[str, Any], request: ScoreRequest) -> tuple[np.ndarray, Done]:
    """Make the output ready, and read what is finished; unread items are dropped, to be asked again.

    Returns sorted hashes of the ids of the items that have a verdict, and what those come to.
    JobError where the parts are of another scoring.
    """
    names = [entry.base_name for entry in folder.listed()]
    parts = [name for name in names if name.startswith("part-")]
    if request.again:
        for name in parts:
            folder.drop(name)
        parts = []
    kept: dict[str, Any] = json.loads(folder.read(MANIFEST)) if MANIFEST in names else {}
    if parts and kept != json.loads(json.dumps(identity)):
        differs = output.what_differs(kept, identity) if kept else "what they were made of is not known"
        raise JobError(
            f"{folder.address} holds {counted(len(parts), 'part')} of another scoring: {differs}. Give another --out, "
            "or add --again to score from the start."
        )
    folder.write(MANIFEST, json.dumps(identity, ensure_ascii=False, allow_nan=False).encode())
    hashes, n_scored, reasons = bytearray(), 0, Counter[str]()
    for name in parts:
        rows = [json.loads(line) for line in folder.read(name).splitlines()]
        left = [row for row in rows if row.get("reason") not in UNREAD]
        if len(left) < len(rows):
            folder.write(name, json_lines(left).encode()) if left else folder.drop(name)
        for row in left:
            hashes += short_hash(str(row["item_id"]))
            n_scored += row["score"] is not None
            reasons.update([] if row["score"] is not None else [str(row["reason"])])
    found = np.sort(np.frombuffer(bytes(hashes), dtype=np.uint64))
    return found, Done(int(found.size), n_scored=n_scored, reasons=reasons)


# ── on the nodes ─────────────────────────────────────────────────────────────────────────────────────────────


class Scorer:
    """An actor: scores the rows of a batch that have no verdict yet, and writes them as one part."""

    def __init__(self, plan: RayPlan, done: np.ndarray) -> None:
        self.plan, self.folder, self.done = plan, Folder(plan.out), done
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            file = Path(folder) / plan.request.judge_file.name
            file.write_bytes(plan.judge_file)
            self.judge = open_judge(replace(plan.request, judge_file=file))
        for provider in {id(asked.provider): asked.provider for asked in models_behind(self.judge)}.values():
            if share := getattr(provider, "share", None):
                share(plan.actors)  # each has its part of the endpoint's pace

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow

        part = {"n_items": 0, "n_scored": 0, "calls": 0, "reasons": "{}", "marks": "[]", "problem": ""}
        try:
            part |= self._score([_parsed(line, self.plan.mapping.roles.values()) for line in table["row"].to_pylist()])
        except ConcordError as error:
            part["problem"] = f"On the node {_this_node()}: {error}"
        return arrow.table({name: [value] for name, value in part.items()})

    def _score(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        reader = RowReader(self.plan.mapping, FindingLog())
        items = [reader.read(0, 0, row) for row in rows]
        hashes = np.array([int.from_bytes(short_hash(item.item_id), "little") for item in items], dtype=np.uint64)
        fresh = list(range(len(items)))
        if self.done.size:
            at = np.minimum(np.searchsorted(self.done, hashes), self.done.size - 1)
            fresh = np.flatnonzero(self.done[at] != hashes).tolist()
        if not fresh:
            return {}
        request = self.plan.request.settled(self.judge)
        asked = [items[k] for k in fresh]
        verdicts = self._verdicts(asked, [rows[k] for k in fresh], request)
        digest = hashlib.blake2b("\n".join(item.item_id for item in asked).encode(), digest_size=8).hexdigest()
        self.folder.write(f"part-{digest}.jsonl", json_lines(verdicts).encode())
        reasons = Counter(str(row["reason"]) for row in verdicts if row["score"] is None)
        return {
            "n_items": len(asked),
            "n_scored": len(asked) - reasons.total(),
            "calls": len(asked) * getattr(self.judge, "calls_an_item", 0),
            "reasons": json.dumps(reasons),
            "marks": json.dumps([*self.judge.marks]),
        }

    def _verdicts(
        self, items: Sequence[Item], rows: Sequence[Mapping[str, Any]], request: ScoreRequest
    ) -> list[dict[str, Any]]:
        if isinstance(self.judge, FusedJudge):  # reads the metrics that stand in columns, too
            with tempfile.TemporaryDirectory(prefix="concord-") as folder:
                file = Path(folder, "items.jsonl")
                file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
                loaded = load_items(file, mapping=self.plan.request.mapping, kept=columns_behind(self.judge))
            scored = self.judge.score(loaded.items, metrics=loaded.metrics, of_more=True)
            batches = [verdict_batch(loaded.items, scored, self.judge.marks, request)]
        else:
            assert isinstance(self.judge, RowJudge)
            size = batch_size(self.judge)
            several = (items[k : k + size] for k in range(0, len(items), size))
            batches = list(scored_batches(request, self.judge, several))
        return [json.loads(line) for batch in batches for line in batch.text.split("\n") if line]


def _this_node() -> str:
    import ray

    return str(ray.util.get_node_ip_address())
