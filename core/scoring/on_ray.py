"""Score files on a Ray cluster: Ray Data reads the rows, and an actor on each node scores them in batches.

::

    OUT/_scoring.json         what is scored with what
    OUT/part-<digest>.jsonl   the verdicts of one batch, written whole or not at all

Finished parts are the checkpoint: a second start skips the items that stand in one.  Where a node is lost, Ray does
its batches again on another; a batch holds the same items then, and so its part has the same name.  Nodes read and
write for themselves, so input and output must lie where all of them see it, at a path or in an object store
(`s3://BUCKET/…`).  Each node has its own keys and rights in its environment.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.data import Mapping as Columns
from core.data import load_items
from core.data.cells import cell_at
from core.data.columns import mapping_of
from core.data.golden import RowReader, check_mapping
from core.data.tables import FindingLog, first_error, has_errors
from core.errors import ConcordError, GoldenError, JobError, JudgeError, UsageError
from core.files import FULL, json_lines
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import LoadedJudge, RowJudge
from core.progress import SILENT, Progress, Stage
from core.scoring.item_file import HEAD_ROWS, ItemFile, columns_behind, look_at
from core.scoring.output import UNREAD, ScoredFile, ScoreRequest, other_scoring, tally, verdict_rows
from core.scoring.run import batch_size, check_unread, identity_of, open_judge, scored_batches

MANIFEST = "_scoring.json"
ITEM_FILES = (".jsonl", ".ndjson", ".parquet")
PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what a killed actor loses of each."""
READING = {"num_cpus": 0.1}
"""What a task that reads takes of its node: actors leave that much of every processor."""
RETRY_SECONDS = 5
"""How long a request to Google's store is tried again; its library would for 15 minutes, without credentials too."""


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
    with closing(open_judge(request, alone=True)) as judge, plain_errors(address):
        rows = _rows(files)
        items = _look(rows, files[0], request.mapping, columns_behind(judge), progress)
        if isinstance(judge, RowJudge):
            items.check_needs(judge.needs)
        done, before = _begin(folder, identity_of(request, items, judge), again=request.again)
        needs, n_actors = _actors(ray, judge)
        sent = replace(request, out=Path("part.jsonl"), items=Path("items"))
        most = REMOTE_PART if judge.models else PART
        whole = most // (n := batch_size(judge)) * n if isinstance(judge, RowJudge) else most
        scored = rows.map_batches(
            Scorer,
            fn_constructor_args=(sent, request.judge_file.read_bytes(), items.mapping, out, done),
            fn_constructor_kwargs={"actors": n_actors},
            batch_size=whole or most,  # whole batches: a model sees the same items together as in one process
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=n_actors),
            **needs,
        )
        counts, calls, marks = before.copy(), 0, dict.fromkeys(judge.marks)
        for batch in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
            for part in batch.to_pylist():
                if part["problem"]:
                    raise JudgeError(part["problem"])
                counts += Counter(json.loads(part["counts"]))
                calls += part["calls"]
                marks |= dict.fromkeys(json.loads(part["marks"]))
                check_unread(request, judge, counts - before)
            progress.publish(Stage("scoring", "scoring", counts.total(), items.n_items))
        if counts.total() != items.n_items:
            raise JobError(f"{counts.total():,} of {items.n_items:,} items came: the input has changed. Add --again.")
    seconds = time.perf_counter() - started
    return ScoredFile(items.n_items, counts, before.total(), calls, seconds, tuple(marks), items.findings)


def _actors(ray: Any, judge: LoadedJudge) -> tuple[dict[str, Any], int]:
    """What an actor takes of its node, and how many there are: one a GPU, a processor, or a node that asks."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cpus, gpus = (int(sum(node.get(kind, 0) for node in nodes)) for kind in ("CPU", "GPU"))
    if not cpus:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    if judge.spec.startswith(("hf:", "repeval:")) or (isinstance(judge, FusedJudge) and judge.runs_models):
        if gpus:
            return {"num_gpus": 1, "num_cpus": 0}, gpus
        smallest = min(node.get("CPU", 1) for node in nodes)
        return {"num_cpus": max(0.5, smallest - 0.2)}, len(nodes)  # no node holds the model twice
    if judge.models:
        asked = [each.provider for each in judge.models]
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


def _look(rows: Any, file: str, given: Mapping[str, str], kept: Mapping[str, str], progress: Progress) -> ItemFile:
    """Look at every row before anything is scored: the columns' roles, how many items there are, ids that differ."""
    paths = [path for path in (*given.values(), *kept.values()) if "." in path or "[" in path]
    head = [_parsed(line["row"], paths) for line in rows.take(HEAD_ROWS)]
    columns, log = list(dict.fromkeys(name for row in head for name in row)), FindingLog()
    mapping = mapping_of(columns, head, given, kept)
    if mapping.layout == "long" or "item_id" not in mapping.roles:
        raise GoldenError(f"{file}: scoring on Ray needs one row for each item, and a column item_id.")
    content = n_items = 0
    filled: Mapping[str, int] = {}

    def parsed() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal content
        batches = rows.iter_batches(batch_size=None, batch_format="pyarrow")
        for number, line in enumerate((line for batch in batches for line in batch["row"].to_pylist()), start=1):
            content = (content + short_hash(line)) % 2**64  # whatever the order of the rows
            yield number, _parsed(line, mapping.roles.values())

    if check_mapping(mapping, mapping.columns, log, labels_needed=False):
        n_items, filled = look_at(parsed(), mapping, log, lambda n: progress.publish(Stage("reading", "reading", n, 0)))
    if has_errors(log.sorted()):
        raise first_error(log.sorted(), f"{file} (rows of all files in the order read)")
    return ItemFile(Path(file), f"rows:{content:016x}", n_items, filled, mapping=mapping)


def _parsed(line: str, paths: Collection[str]) -> dict[str, Any]:
    """The row of a line, with a column for each of the `paths` into nested JSON that it has."""
    try:
        row: dict[str, Any] = json.loads(line)
        nested = {path: cell_at(row, path) for path in paths if path not in row}
        return row | {path: cell for path, cell in nested.items() if cell is not None}
    except (ValueError, TypeError, AttributeError) as error:
        raise GoldenError(f"A row of the input is not a JSON object: {line[:80]!r}.") from error


def short_hash(text: str) -> int:
    """Return a number of 64 bits that tells texts apart, the same on every node."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _begin(folder: Folder, identity: Mapping[str, Any], *, again: bool) -> tuple[np.ndarray, Counter[str]]:
    """Make the output ready, and read what is finished; unread items are dropped, to be asked again.

    Returns hashes of the ids of the items that have a verdict, and their `tally`.
    JobError where the parts are of another scoring.
    """
    names = [entry.base_name for entry in folder.listed()]
    parts, hashes, counts = [name for name in names if name.startswith("part-")], list[int](), Counter[str]()
    for name in parts if again else ():
        folder.drop(name)
    parts = [] if again else parts
    kept = json.loads(folder.read(MANIFEST)) if parts and MANIFEST in names else {}
    identity = json.loads(json.dumps(identity))
    found = {name: [json.loads(line) for line in folder.read(name).splitlines()] for name in parts}
    if parts and kept != identity:
        raise other_scoring(folder.address, sum(map(len, found.values())), kept, identity)
    folder.write(MANIFEST, json.dumps(identity).encode())
    for name, rows in found.items():
        left = [row for row in rows if row.get("reason") not in UNREAD]
        if len(left) < len(rows):
            folder.write(name, json_lines(left).encode()) if left else folder.drop(name)
        hashes += [short_hash(str(row["item_id"])) for row in left]
        counts += tally(left)
    return np.array(hashes, dtype=np.uint64), counts


# ── on the nodes ─────────────────────────────────────────────────────────────────────────────────────────────


class Scorer:
    """An actor: scores the rows of a batch that have no verdict yet, and writes them as one part.

    `judge_file` is the content of the file that `request` names, `done` are hashes of ids that have a verdict.
    """

    def __init__(
        self, request: ScoreRequest, judge_file: bytes, mapping: Columns, out: str, done: np.ndarray, *, actors: int
    ) -> None:
        self.request, self.mapping, self.folder, self.done = request, mapping, Folder(out), done
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            file = Path(folder) / request.judge_file.name
            file.write_bytes(judge_file)
            self.judge = open_judge(replace(request, judge_file=file), alone=True)
        for provider in {id(asked.provider): asked.provider for asked in self.judge.models}.values():
            if share := getattr(provider, "share", None):
                share(actors)  # each has its part of the endpoint's pace

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow
        import ray

        part = {"counts": "{}", "calls": 0, "marks": "[]", "problem": ""}
        try:
            part |= self.score([_parsed(line, self.mapping.roles.values()) for line in table["row"].to_pylist()])
        except ConcordError as error:
            part["problem"] = f"On the node {ray.util.get_node_ip_address()}: {error}"
        return arrow.table({name: [value] for name, value in part.items()})

    def score(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Score and write the fresh ones of `rows`; returns what they come to."""
        reader = RowReader(self.mapping, FindingLog())
        items = [reader.read(0, 0, row) for row in rows]
        hashes = np.array([short_hash(item.item_id) for item in items], dtype=np.uint64)
        fresh = np.flatnonzero(~np.isin(hashes, self.done)).tolist()
        if not fresh:
            return {}
        items, judge = [items[k] for k in fresh], self.judge
        if isinstance(judge, FusedJudge):  # reads the metrics that stand in columns, too
            with tempfile.TemporaryDirectory(prefix="concord-") as folder:
                file = Path(folder, "items.jsonl")
                file.write_text("".join(json.dumps(rows[k]) + "\n" for k in fresh), "utf-8")
                loaded = load_items(file, mapping=self.request.mapping, kept=columns_behind(judge))
            scored = judge.score(loaded.items, metrics=loaded.metrics, of_more=True)
            verdicts = verdict_rows(loaded.items, scored, judge, self.request)
        else:
            assert isinstance(judge, RowJudge)
            size = batch_size(judge)
            several = (items[k : k + size] for k in range(0, len(items), size))
            verdicts = [row for batch in scored_batches(self.request, judge, several) for row in batch]
        name = short_hash("\n".join(item.item_id for item in items))
        self.folder.write(f"part-{name:016x}.jsonl", json_lines(verdicts).encode())
        calls = len(items) * (judge.calls_an_item if isinstance(judge, RowJudge) else 0)
        return {"counts": json.dumps(tally(verdicts)), "calls": calls, "marks": json.dumps(judge.marks)}


# ── files and folders ────────────────────────────────────────────────────────────────────────────────────────


class Folder:
    """A folder at `address`, read and written through pyarrow's file systems."""

    def __init__(self, address: str) -> None:
        self.address = address

    @cached_property
    def place(self) -> tuple[Any, str]:
        """Pyarrow's file system, and the path within it."""
        from pyarrow import ArrowException, fs

        if "://" not in self.address:
            return fs.LocalFileSystem(), str(Path(self.address).expanduser().absolute())
        address = self.address
        if address.startswith(("gs://", "gcs://")) and "retry_limit_seconds=" not in address:
            address += f"{'&' if '?' in address else '?'}retry_limit_seconds={RETRY_SECONDS}"
        try:
            with self.said("reached"):
                file_system, path = fs.FileSystem.from_uri(address)
        except (ArrowException, ValueError, NotImplementedError) as error:
            raise UsageError(
                f"{self.address}: is not a place that can be read ({_first_line(error)}). Give a path, or an address "
                "such as s3://BUCKET/FOLDER or gs://BUCKET/FOLDER."
            ) from error
        # a copy of S3's is given up after three tries, one made of an address after ten: a minute and a half
        return (copy(file_system) if file_system.type_name == "s3" else file_system), path

    def listed(self, *, deep: bool = False) -> list[Any]:
        """The files in this folder, by name; none where there is no folder."""
        from pyarrow import fs

        file_system, path = self.place
        with self.said("read"):
            found = file_system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=deep))
        return sorted((entry for entry in found if entry.type == fs.FileType.File), key=lambda entry: entry.path)

    def read(self, name: str) -> bytes:
        """Read a file of this folder."""
        file_system, path = self.place
        with self.said("read"), file_system.open_input_stream(f"{path}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Put a file into this folder, whole or not at all.  JobError for a full disk or a store without rights."""
        file_system, path = self.place
        final = now = f"{path}/{name}"
        with self.said("written"):
            if file_system.type_name not in ("s3", "gcs"):  # these have no folders, and an object appears when whole
                file_system.create_dir(path, recursive=True)
                now = f"{path}/.{name}.part"
            with file_system.open_output_stream(now) as file:
                file.write(data)
            if now != final:
                file_system.move(now, final)

    def drop(self, name: str) -> None:
        """Delete a file of this folder."""
        file_system, path = self.place
        with self.said("written"):
            file_system.delete_file(f"{path}/{name}")

    @contextmanager
    def said(self, done: str) -> Iterator[None]:
        """Raise what a file system or a store says as a JobError with what to do."""
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                raise JobError(
                    f"{self.address}: the disk is full. Finished parts stay; free some space and run the same command "
                    "again."
                ) from error
            raise JobError(
                f"{self.address}: cannot be {done} ({_first_line(error)}). Check that it exists, and that every node "
                "may read and write it with the credentials in its own environment."
            ) from error


def input_files(address: str) -> list[str]:
    """The files that `address` names (one file, a folder or a pattern with `*`), sorted, as Ray Data reads them.

    GoldenError where there is none, JobError where it cannot be read.
    """
    from pyarrow import fs

    bare, mark, query = address.partition("?") if "://" in address else (address, "", "")
    wild = re.search(r"[*\[]", bare)
    above = (bare[: wild.start()].rpartition("/")[0] or ".") if wild else bare
    folder = Folder(above + mark + query)
    file_system, path = folder.place
    scheme = f"{address.partition('://')[0]}://" if "://" in address and file_system.type_name != "local" else ""
    with folder.said("read"):
        if not wild and file_system.get_file_info(path).type == fs.FileType.File:
            return [scheme + path]
    pattern = f"{path}/{bare[len(above) :].lstrip('/')}" if wild else "*"
    files = [
        scheme + entry.path
        for entry in folder.listed(deep=True)
        if not entry.base_name.startswith((".", "_"))
        and fnmatch(entry.path, pattern)
        and (wild or entry.path.lower().endswith(ITEM_FILES))
    ]
    if not files:
        raise GoldenError(
            f"{address}: no file of items is there. Give a JSONL or Parquet file, a folder or a pattern such as "
            "day-*.jsonl."
        )
    return files


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].strip()[:300].rstrip(".") or type(error).__name__
