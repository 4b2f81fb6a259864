"""Score files on a Ray cluster: Ray Data reads the rows, and actors on the nodes score them in batches.

::

    OUT/_scoring.json         digests and options of the scoring
    OUT/part-<digest>.jsonl   the verdicts of one batch, written completely or not at all

A restarted scoring skips the items in finished parts. If a node is lost, Ray repeats its batches on another node. A
repeated batch has the same items, so its part has the same name.

All nodes must be able to access input and output, at a path or in an object store (`s3://BUCKET/…`). Every node needs
the keys and credentials in its environment.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.data import Mapping as Columns
from core.data.cells import cell_at
from core.data.columns import mapping_of
from core.data.golden import RowReader, check_mapping
from core.data.tables import FindingLog, first_error, has_errors
from core.errors import ConcordError, GoldenError, JobError, JudgeError, UsageError
from core.files import json_lines
from core.judge_files.loaded import RowJudge
from core.progress import SILENT, Progress, Stage
from core.records import Item, Unscored
from core.scoring.item_file import HEAD_ROWS, stored_columns
from core.scoring.output import UNREAD, ScoredFile, ScoreRequest, other_scoring, tally, verdict_rows
from core.scoring.run import batch_size, check_unread, identity_of, open_judge, require_parts, scored_batches

MANIFEST = "_scoring.json"
LINES, TABLES = (".jsonl", ".ndjson"), (".parquet",)
PART, REMOTE_PART = 2_000, 250
"""Items of a part, which a killed actor loses: for a judge that computes, and for one that asks a model."""
READING = {"num_cpus": 0.1}
"""Share of a processor for a task that reads, since it mostly waits."""
FOR_READING = 0.2
"""Share of its processor (or node) that a scoring actor leaves for two tasks that read."""
ASKING = 0.5
"""Share of a processor for an actor that asks an endpoint, since it waits for replies."""


def score_on_ray(
    address: str, request: ScoreRequest, source: str, out: str, *, progress: Progress = SILENT
) -> ScoredFile:
    """Score the items of a file or folder on a Ray cluster, and write the verdicts into a folder.

    Args:
        address: Address of the cluster.
        request: The judge file and the options of the scoring.
        source: Path or URL of the items: JSON lines or Parquet, one row per item, with a column item_id. An unreadable
            row gets an Unscored verdict ("missing input").
        out: Folder of the verdicts (JSON lines). Finished parts stay there after any error.

    Raises:
        JobError: The cluster, a folder or existing parts can't be used, or two rows share an id.
        GoldenError: The columns of the items can't be used.
        UsageError: The request has a budget, batch files or a fused judge, which Ray doesn't support.
        JudgeError: The judge failed on a node.
    """
    started = time.perf_counter()
    if (request.budget, request.budget_usd) != (None, None) or request.batch_write or request.batch_read:
        raise UsageError("--ray can't be combined with a budget or batches. Remove --ray or the other option.")
    files, folder = input_files(source), Folder(out)
    ray = connected(address)
    progress.publish(Stage("reading", "reading", 0, 0))
    with closing(open_judge(request, alone=True)) as judge, plain_errors(address):
        if not isinstance(judge, RowJudge):
            raise UsageError(f"{request.judge_file} contains a fused judge, which can't run on Ray. Remove --ray.")
        read = ray.data.read_text if next(iter(files)).lower().endswith(LINES) else ray.data.read_parquet
        rows = read(list(files), **READING)
        mapping = _columns_of(rows.take(HEAD_ROWS), request, judge, source)
        n_items, identity = rows.count(), identity_of(request, [*map(list, files.items())], judge)
        done, before = _begin(folder, identity)
        needs, n_actors = _actors(ray, judge)
        # actors receive rows and write parts, so they don't need this machine's file names
        sent = replace(request, out=Path("part.jsonl"), items=Path("items"))
        size = batch_size(judge)  # the same batches as in one process
        scored = rows.map_batches(
            Scorer,
            fn_constructor_args=(sent, request.judge_file.read_bytes(), mapping, out, done),
            batch_size=max(1, (REMOTE_PART if judge.models else PART) // size) * size,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=n_actors),
            **needs,
        )
        counts, ids = before.copy(), [done]
        for batch in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
            for part in batch.to_pylist():
                if part["problem"]:
                    raise JudgeError(part["problem"])
                counts += Counter(json.loads(part["counts"]))
                ids.append(np.frombuffer(part["ids"], dtype=np.uint64))
                check_unread(judge, counts - before)
            progress.publish(Stage("scoring", "scoring", counts.total(), n_items))
        if len(np.unique(np.concatenate(ids))) < n_items:
            raise JobError(
                f"{source}: rows have changed, or two rows share an id. Fix the file, delete {out} and "
                "run the command again."
            )
    calls = (counts.total() - before.total()) * judge.calls_an_item
    return ScoredFile(n_items, counts, before.total(), calls, time.perf_counter() - started, judge.marks)


def _actors(ray: Any, judge: RowJudge) -> tuple[dict[str, Any], int]:
    """Return the resources and the number of actors: one per GPU, per CPU, or per node for an endpoint."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cpus, gpus = (int(sum(node.get(kind, 0) for node in nodes)) for kind in ("CPU", "GPU"))
    if not cpus:
        raise JobError("The Ray cluster has no CPUs. Start nodes with CPUs (ray start --num-cpus).")
    if judge.spec.startswith(("hf:", "repeval:")):
        if gpus:
            return {"num_gpus": 1, "num_cpus": 0}, gpus
        smallest = min(node.get("CPU", 1) for node in nodes)
        # most of a node, so that no node loads the model twice (if all nodes have the same size)
        return {"num_cpus": max(0.5, smallest - FOR_READING)}, len(nodes)
    if judge.models:
        return {"num_cpus": ASKING}, len(nodes)
    return {"num_cpus": 1 - FOR_READING}, cpus


def _columns_of(head: Sequence[dict[str, Any]], request: ScoreRequest, judge: RowJudge, source: str) -> Columns:
    """Find the roles of the columns from the first rows. Raises GoldenError if they can't be used."""
    kept = stored_columns(judge)
    paths = [path for path in (*request.mapping.values(), *kept.values()) if "." in path or "[" in path]
    rows = [_row_of(cells, paths) for cells in head]
    mapping = mapping_of(list(dict.fromkeys(name for row in rows for name in row)), rows, request.mapping, kept)
    if mapping.layout == "long" or "item_id" not in mapping.roles:
        raise GoldenError(
            f"{source}: scoring on Ray requires one row per item and an item_id column. Convert the file."
        )
    log = FindingLog()
    check_mapping(mapping, mapping.columns, log, labels_needed=False)
    if has_errors(log.sorted()):
        raise first_error(log.sorted(), source)
    require_parts(judge.needs, mapping.roles, mapping.columns, source)
    return mapping


def _row_of(cells: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return a row from Ray Data, with a column for each existing path into nested JSON."""
    row: Any = cells
    if list(cells) == ["text"]:  # a line of JSON
        try:
            row = json.loads(cells["text"])
        except ValueError:
            row = None
    if not isinstance(row, dict):
        raise GoldenError(f"A row of the input isn't a JSON object: {str(cells)[:80]!r}.")
    nested = {path: cell_at(row, path) for path in paths if path not in row}
    return row | {path: cell for path, cell in nested.items() if cell is not None}


def short_hash(text: str) -> int:
    """Return a 64-bit hash of a text that is the same on every node."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _begin(folder: Folder, identity: Mapping[str, Any]) -> tuple[np.ndarray, Counter[str]]:
    """Prepare the output folder and read finished parts; drop unread items, so that they are scored again.

    Returns hashes of the ids of items with a verdict, and their `tally`. Raises JobError if parts belong to another
    scoring.
    """
    names = [entry.base_name for entry in folder.listed()]
    hashes, counts, identity = list[int](), Counter[str](), json.loads(json.dumps(identity))
    found = {
        name: [json.loads(line) for line in folder.read(name).splitlines()]
        for name in names
        if name.startswith("part-")
    }
    kept = json.loads(folder.read(MANIFEST)) if MANIFEST in names else {}
    if found and kept != identity:
        raise other_scoring(folder.address, sum(map(len, found.values())), kept, identity)
    folder.write(MANIFEST, json.dumps(identity).encode())
    for name, rows in found.items():
        left = [row for row in rows if row.get("reason") not in UNREAD]
        if len(left) < len(rows):
            folder.write(name, json_lines(left).encode()) if left else folder.drop(name)
        hashes += [short_hash(str(row["item_id"])) for row in left]
        counts += tally(left)
    return np.array(hashes, dtype=np.uint64), counts


# ── code that runs on the nodes ──────────────────────────────────────────────────────────────────────────────


class Scorer:
    """Ray actor that scores the new rows of a batch, and writes their verdicts as one part (a JSONL file).

    Calling the actor with a table returns a table with one row:

    - `counts`: the part's `tally` as JSON
    - `ids`: the `short_hash` of each new item, uint64 as bytes
    - `problem`: the reason why the batch was not scored, or ""

    Args:
        judge_file: Content of the judge file.
        done: Hashes of the ids of items that already have a verdict.
    """

    def __init__(self, request: ScoreRequest, judge_file: bytes, mapping: Columns, out: str, done: np.ndarray) -> None:
        self.request, self.mapping, self.folder, self.done = request, mapping, Folder(out), done
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            file = Path(folder) / request.judge_file.name
            file.write_bytes(judge_file)
            judge = open_judge(replace(request, judge_file=file), alone=True)
        assert isinstance(judge, RowJudge)
        self.judge = judge

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow
        import ray

        part: dict[str, Any] = {"counts": "{}", "ids": b"", "problem": ""}
        try:
            part |= self.score(table.to_pylist())
        except ConcordError as error:
            part["problem"] = f"On the node {ray.util.get_node_ip_address()}: {error}"
        return arrow.table({name: [value] for name, value in part.items()})

    def score(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Score the new items of `rows` and write their verdicts; return counts as JSON, and hashes of the item ids."""
        items, unreadable = list[Item](), list[Unscored]()
        for cells in rows:
            try:
                item: Item | Unscored = self._item_of(cells)
            except GoldenError as error:
                name = f"unreadable-{short_hash(json.dumps(cells, default=str)):016x}"
                item = Unscored(name, "missing input", str(error))
            if short_hash(item.item_id) not in self.done:
                items.append(item) if isinstance(item, Item) else unreadable.append(item)
        size, blanks = batch_size(self.judge), [Item(each.item_id, "") for each in unreadable]
        several = (items[k : k + size] for k in range(0, len(items), size))
        verdicts = [row for batch in scored_batches(self.request, self.judge, several) for row in batch]
        verdicts += verdict_rows(blanks, unreadable, self.judge, self.request)
        names = [item.item_id for item in (*items, *blanks)]
        if names:
            digest = short_hash("\n".join(names))
            self.folder.write(f"part-{digest:016x}.jsonl", json_lines(verdicts).encode())
        ids = np.array([short_hash(name) for name in names], dtype=np.uint64)
        return {"counts": json.dumps(tally(verdicts)), "ids": ids.tobytes()}

    def _item_of(self, cells: Mapping[str, Any]) -> Item:
        log = FindingLog()
        row = _row_of(cells, tuple(self.mapping.roles.values()))
        item = RowReader(self.mapping, log).read(0, 0, row)
        if has_errors(log.sorted()):
            raise first_error(log.sorted(), "a row")
        if row.get(self.mapping.roles["item_id"]) in (None, ""):
            raise GoldenError("The row has no item_id.")
        return item


# ── files and folders ────────────────────────────────────────────────────────────────────────────────────────


class Folder:
    """A local or remote folder, accessed through pyarrow's file systems."""

    def __init__(self, address: str) -> None:
        self.address = address

    @cached_property
    def place(self) -> tuple[Any, str]:
        """Pyarrow's file system for the address, and the path in it."""
        from pyarrow import fs

        if "://" not in self.address:
            return fs.LocalFileSystem(), str(Path(self.address).expanduser().absolute())
        try:
            with self.explain_errors("reached"):
                file_system, path = fs.FileSystem.from_uri(self.address)
        except (ValueError, NotImplementedError) as error:  # pyarrow's own errors are ValueErrors
            raise UsageError(
                f"{self.address} can't be read ({_first_line(error)}). Specify a path, or an address such as "
                "s3://BUCKET/FOLDER or gs://BUCKET/FOLDER."
            ) from error
        return file_system, path

    def listed(self, *, deep: bool = False) -> list[Any]:
        """List the files in this folder by name. If the address is a file, list only this file."""
        from pyarrow import fs

        file_system, path = self.place
        with self.explain_errors("read"):
            about = file_system.get_file_info(path)
            if about.type == fs.FileType.File:
                return [about]
            found = file_system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=deep))
        return sorted((entry for entry in found if entry.type == fs.FileType.File), key=lambda entry: entry.path)

    def read(self, name: str) -> bytes:
        """Return the content of a file in this folder."""
        file_system, path = self.place
        with self.explain_errors("read"), file_system.open_input_stream(f"{path}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Write a file in this folder, completely or not at all.

        Raises JobError if the disk is full or permission is denied.
        """
        file_system, path = self.place
        final = now = f"{path}/{name}"
        with self.explain_errors("written"):
            if file_system.type_name not in ("s3", "gcs"):  # object stores have no folders and write atomically
                file_system.create_dir(path, recursive=True)
                now = f"{path}/.{name}.part"
            with file_system.open_output_stream(now) as file:
                file.write(data)
            if now != final:
                file_system.move(now, final)

    def drop(self, name: str) -> None:
        """Delete a file in this folder."""
        file_system, path = self.place
        with self.explain_errors("written"):
            file_system.delete_file(f"{path}/{name}")

    @contextmanager
    def explain_errors(self, done: str) -> Iterator[None]:
        """Turn errors of a file system or object store into a JobError that suggests a remedy."""
        try:
            yield
        except OSError as error:
            raise JobError(
                f"{self.address} can't be {done} ({_first_line(error)}). Check that it exists and has space, and that "
                "every node can access it with its own credentials. Finished parts are saved."
            ) from error


def input_files(address: str) -> dict[str, int]:
    """Return the item files at `address` for Ray Data as a dict from path to size in bytes, sorted by path.

    `address` is a file or a folder, as a path or a URL. Raises GoldenError if there are no JSONL or Parquet files, or
    if both formats are mixed. Raises JobError if `address` can't be read.
    """
    folder = Folder(address)
    scheme = f"{address.partition('://')[0]}://" if "://" in address and folder.place[0].type_name != "local" else ""
    files = {
        scheme + entry.path: entry.size
        for entry in folder.listed(deep=True)
        if not entry.base_name.startswith((".", "_")) and entry.path.lower().endswith(LINES + TABLES)
    }
    if not files or len({name.lower().endswith(TABLES) for name in files}) > 1:
        found = "The folder contains both formats" if files else "No JSONL or Parquet file was found"
        raise GoldenError(
            f"{address}: on Ray, items must be in one JSONL or Parquet file, or in a folder with files of one format. "
            f"{found}. Convert or move the files."
        )
    return files


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].strip()[:300].rstrip(".") or type(error).__name__
