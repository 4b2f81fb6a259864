"""Scoring on a Ray cluster: Ray Data streams parts of the input to judges on the nodes, which write them.

::

    OUT/_scoring.json                    what is scored with what (digests), and the counts once all is done
    OUT/part-00003-0000012.parquet       part 12 of the fourth file: the names' order is that of the items

A part is a run of items of one file, the same in every call.  One that is there, and holds its items, is not scored
again: finished parts are the checkpoint, whoever lost a node or was killed.  Nodes read and write for themselves, so
input and output lie where all see them; they reach no database.  The judge file goes with the plan; keys do not.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from core.api.loading import load_judge
from core.cluster import connected, plain_errors
from core.data import Mapping as Columns
from core.data import load_items
from core.data.tables import open_table
from core.errors import ConcordError, GoldenError, JobError, JudgeError, UsageError
from core.export.fused_judge import FusedJudge
from core.progress import SILENT, Progress, Stage
from core.records import Finding, Item
from core.scoring import output
from core.scoring.item_file import ItemFile, check_needs, file_digest, validate_items
from core.scoring.mending import UNREAD, check_unread, model_behind
from core.scoring.output import Done, verdict_batch
from core.scoring.places import Place, as_words, item_files
from core.scoring.request import RowJudge, ScoredFile, ScoreRequest
from core.scoring.run import scored_batches

AnyJudge = RowJudge | FusedJudge

PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what a lost node costs at most, an actor."""

MANIFEST = "_scoring.json"
_KINDS = dict.fromkeys(("score", "calibrated", "low", "high", "width", "expected_error"), "double")
_KINDS |= {"n_read": "int64", "n_unread": "int64", "abstained": "bool"}


@dataclass(frozen=True)
class _File:
    """An input file as it was looked at; `mapping` is None where several rows make an item."""

    number: int
    path: str
    digest: str
    mapping: Columns | None


@dataclass(frozen=True)
class _Plan:
    """All that a node must know.  `judge_file` is the content of a file named `request.judge_file`."""

    request: ScoreRequest
    judge_file: bytes
    source: Place
    out: Place
    parquet: bool
    size: int
    fused: bool
    actors: int = 1

    @property
    def suffix(self) -> str:
        return ".parquet" if self.parquet else ".jsonl"


@dataclass(frozen=True)
class _Look:
    """What a node saw of a file: its items without texts, 8 bytes of hash an id, or a `problem`."""

    items: ItemFile | None = None
    mapping: Columns | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Part:
    """Items of a file in their order, or a `problem`; `metrics` are the numbers that they bring for a fused judge."""

    name: str
    items: tuple[Item, ...] = ()
    metrics: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    problem: str = ""


def score_on_ray(
    address: str, request: ScoreRequest, source: str, out: str, *, progress: Progress = SILENT
) -> ScoredFile:
    """Score what `source` names (a file, a folder, a pattern, at a path or URL) into the folder `out`, on a cluster.

    Parts are JSON lines where `out` ends in .jsonl, Parquet otherwise.  Goes on from the parts that are there.
    JobError for a cluster, a place or parts that cannot be used, GoldenError for items, JudgeError as the judge raises
    it on a node; finished parts are kept.
    """
    started = time.perf_counter()
    if request.budget is not None or request.workers or request.batch or request.batch_read:
        raise UsageError("--ray takes no --budget, --workers or --batch: the cluster's own size and pace say how fast.")
    place, paths = item_files(source)
    ray = connected(address)
    with closing(_open(request)) as judge:
        asks = model_behind(judge) is not None or (isinstance(judge, FusedJudge) and judge.by_model)
        plan = _Plan(
            replace(request, out=Path("part.jsonl"), items=Path("items"), workers=1),
            *(request.judge_file.read_bytes(), place, Place(out), Path(out.partition("?")[0]).suffix != ".jsonl"),
            REMOTE_PART if asks else PART,
            isinstance(judge, FusedJudge),
        )
        progress.publish(Stage("reading", "reading", 0, 0))
        with plain_errors(address):
            items, files = _looked_at(ray, plan, paths)
        if not isinstance(judge, FusedJudge):
            check_needs(items, judge.needs)
        with plain_errors(address):
            plan, options = _manned(ray, plan, judge)
        identity = output.identity_of(request, items, judge)
        before = _begin(plan, identity | {"part": plan.size})
        done = _score_all(
            *(ray, address, (plan, options), files), n_items=items.n_items, judge=judge, progress=progress
        )
        _note(plan, identity | {"part": plan.size}, done)
        return ScoredFile(
            *(items.n_items, done.items, done.n_scored, min(before * plan.size, items.n_items), done.calls, True),
            time.perf_counter() - started,
            judge.marks,
            dict(done.reasons.most_common()),
            items.findings,
        )


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _open(request: ScoreRequest) -> AnyJudge:
    judge = load_judge(request.judge_file, judge=request.judge or None, accept_edited=request.accept_edited)
    if isinstance(judge, FusedJudge) and (request.judge or request.coverage is not None):
        raise UsageError(f"{request.judge_file}: is a fused judge, which takes no --judge and gives no intervals.")
    assert isinstance(judge, AnyJudge)
    return judge


def _looked_at(ray: Any, plan: _Plan, paths: Sequence[str]) -> tuple[ItemFile, list[_File]]:
    """Every file looked at by some node: what they hold together, and each as it is to be read."""
    task = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_look)
    looks: list[_Look] = ray.get([task.remote(plan, path) for path in paths])
    files, filled, findings = [], Counter[str](), list[Finding]()
    hashes, whole = [], hashlib.sha256()
    for number, (path, look) in enumerate(zip(paths, looks, strict=True)):
        if look.items is None:
            raise GoldenError(look.problem)
        files.append(_File(number, path, look.items.digest, look.mapping))
        filled.update(look.items.filled)
        findings += look.items.findings
        hashes.append(look.items.hashes)
        whole.update(f"{look.items.digest}\n".encode())
    _check_apart(paths, hashes)
    n_items = sum(len(of_file) for of_file in hashes)
    digest = looks[0].items.digest if len(looks) == 1 and looks[0].items else f"sha256:{whole.hexdigest()}"
    return ItemFile(Path(paths[0]), digest, n_items, filled, tuple(findings)), files


def _check_apart(paths: Sequence[str], hashes: Sequence[np.ndarray]) -> None:
    """GoldenError where an id stands in two files."""
    each, of_file = np.concatenate(hashes), np.repeat(np.arange(len(hashes)), [len(part) for part in hashes])
    order = np.argsort(each, kind="stable")
    again = np.flatnonzero(np.diff(each[order]) == 0)
    if again.size:
        first, second = (paths[of_file[order[again[0] + k]]] for k in (0, 1))
        raise GoldenError(
            f"{second}: {again.size:,} ids stand in an earlier file, too (the first in {first}). Every item needs an "
            "id of its own over all files; a column item_id gives it."
        )


def _manned(ray: Any, plan: _Plan, judge: AnyJudge) -> tuple[_Plan, dict[str, Any]]:
    """How many actors with what each, after every node has said that it can do its part."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node["Resources"].get("GPU", 0) for node in nodes))
    cpus = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
    if judge.spec.startswith("hf:") and gpus:
        n, options = gpus, {"num_gpus": 1, "num_cpus": 0}
        nodes = [node for node in nodes if node["Resources"].get("GPU", 0)]
    elif model_behind(judge) is not None:  # waits for an endpoint, or takes all cores of its node
        n, options = len(nodes), {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
    else:
        n, options = cpus, {"num_cpus": 1}
    if not n:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    if (asked := model_behind(judge)) is not None and (most := getattr(asked.provider, "concurrency", None)):
        n = min(n, most)
    plan = replace(plan, actors=n)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    has_key = bool(asked and getattr(asked.provider, "has_key", False))
    check = ray.remote(num_cpus=0)(_ready)
    waiting = {
        node["NodeManagerAddress"]: check.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote(
            plan, has_key, str(node["NodeID"])
        )
        for node in nodes
    }
    problems = [f"{name}: {problem}" for name, reply in waiting.items() if (problem := ray.get(reply))]
    if problems:
        raise JobError(f"Nothing was started. On {'; on '.join(problems)}")
    return plan, options


def _begin(plan: _Plan, identity: Mapping[str, Any]) -> int:
    """Make the output ready; how many parts of this very scoring are there.  JobError for what is of another."""
    names = plan.out.names()
    parts = {name for name in names if name.startswith("part-")}
    if plan.request.again:
        for name in parts:
            plan.out.drop(name)
        parts = set()
    elif parts or MANIFEST in names:
        try:
            kept = json.loads(plan.out.read(MANIFEST))["identity"] if MANIFEST in names else {}
        except (ValueError, KeyError, TypeError):
            kept = {}
        if kept != json.loads(json.dumps(identity)):
            changed = [words for name, words in output.CHANGED.items() if kept.get(name) != identity[name]]
            raise JobError(
                f"{plan.out.address} holds {len(parts):,} parts of another scoring: "
                f"{changed[0] if kept and changed else 'what they were made of is not known'}. Give another --out, or "
                "add --again to drop them and score from the start."
            )
    _note(plan, identity, None)
    return len(parts)


def _note(plan: _Plan, identity: Mapping[str, Any], done: Done | None) -> None:
    body = {"identity": identity, "done": None if done is None else asdict(done)}
    plan.out.write(MANIFEST, json.dumps(body, ensure_ascii=False, allow_nan=False).encode())


# ── the pipeline ─────────────────────────────────────────────────────────────────────────────────────────────


def _score_all(
    ray: Any,
    address: str,
    manned: tuple[_Plan, dict[str, Any]],
    files: Sequence[_File],
    *,
    n_items: int,
    judge: AnyJudge,
    progress: Progress,
) -> Done:
    """Run the pipeline until all parts are there; with what is left of the cluster, where a node was lost."""
    kept, (plan, options) = -1, manned
    while True:
        done = Done()
        try:
            for row in _scored_parts(ray, plan, files, options):
                if row["problem"]:
                    raise JudgeError(str(row["problem"]))
                done = Done(
                    done.items + int(row["n_items"]),
                    done.calls + int(row["calls"]),
                    n_scored=done.n_scored + int(row["n_scored"]),
                    reasons=done.reasons + Counter(json.loads(row["reasons"])),
                )
                progress.publish(Stage("scoring", "scoring", done.items, n_items))
                check_unread(plan.request, judge, Done(), done)
        except ray.exceptions.RayError:
            now = sum(name.startswith("part-") for name in plan.out.names())
            if now <= kept:  # twice in a row at the same place
                with plain_errors(address):
                    raise
            kept = now
            progress.publish(Stage("scoring", "scoring on what is left of the cluster", done.items, n_items))
            with plain_errors(address):
                plan, options = _manned(ray, plan, judge)
            continue
        if done.items != n_items:
            raise JobError(f"{done.items:,} of {n_items:,} items came: the input has changed. Add --again.")
        return done


def _scored_parts(ray: Any, plan: _Plan, files: Sequence[_File], options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # a block is a part: what is handed out, and what is lost with a node
    rows = (
        ray.data.from_items([{"file": file} for file in files], override_num_blocks=len(files))
        .map_batches(_read, batch_size=1, fn_args=(plan,), num_cpus=0)
        .map_batches(
            _Scorer,
            batch_size=1,
            fn_constructor_args=(plan,),
            compute=ray.data.ActorPoolStrategy(size=plan.actors),
            max_restarts=0,
            max_task_retries=0,
            **options,
        )
    )
    yield from rows.iter_rows()


# ── on the nodes ─────────────────────────────────────────────────────────────────────────────────────────────


def _look(plan: _Plan, path: str) -> _Look:
    try:
        with plan.source.copied(path) as file:
            items = validate_items(file)
            return _Look(replace(items, table=None, mapping=None, kept=()), None if items.kept else items.mapping)
    except (ConcordError, OSError) as error:
        said = error if isinstance(error, ConcordError) else JobError(f"cannot be read on this node ({error})")
        return _Look(problem=as_words(said, path))


def _ready(plan: _Plan, has_key: bool, _node: str) -> str:
    """Why this node cannot do its part; "" where it can."""
    try:
        with closing(_opened(plan)) as judge:
            asked = model_behind(judge)
            if asked is not None and has_key and not getattr(asked.provider, "has_key", True):
                name = getattr(asked.provider, "key_name", "OPENAI_API_KEY")
                return f"{name} is not set. Set it in the environment that the node is started in (ray start)."
            if asked is not None and (load := getattr(asked.provider, "ready", None)):
                load()  # a local model that is not here is told now
        name = f".try-{_node}"
        plan.out.write(name, b"")
        plan.out.drop(name)
    except ConcordError as error:
        return str(error)
    return ""


def _opened(plan: _Plan) -> AnyJudge:
    """The judge of the plan, with the key of this node and its share of the pace."""
    with TemporaryDirectory(prefix="concord-") as folder:
        file = Path(folder) / plan.request.judge_file.name
        file.write_bytes(plan.judge_file)
        judge = _open(replace(plan.request, judge_file=file))
    if (asked := model_behind(judge)) is not None and (share := getattr(asked.provider, "share", None)):
        share(plan.actors)
    return judge


def _read(batch: dict[str, Any], plan: _Plan) -> Iterator[dict[str, Any]]:
    """Input files → a row for each of their parts."""
    for file in batch["file"]:
        for part in _parts(plan, file):
            column = np.empty(1, dtype=object)
            column[0] = part
            yield {"part": column}


def _parts(plan: _Plan, file: _File) -> Iterator[_Part]:
    with plan.source.copied(file.path) as path:
        if file_digest(path) != file.digest:
            yield _Part("", problem=f"{file.path} has changed while it was scored. Add --again to score it as it is.")
            return
        names = (f"part-{file.number:05d}-{k:07d}{plan.suffix}" for k in count())
        if plan.fused or file.mapping is None:
            golden = load_items(path)
            for start in range(0, len(golden.items), plan.size):
                metrics = {name: values[start : start + plan.size] for name, values in golden.metrics.items()}
                yield _Part(next(names), golden.items[start : start + plan.size], metrics)
            return
        table = open_table(path, max_mb=None, max_rows=None)
        for items in ItemFile(path, file.digest, 0, {}, (), table, file.mapping).batches(plan.size):
            yield _Part(next(names), items)


class _Scorer:
    """An actor: parts → what they came to, their lines written."""

    def __init__(self, plan: _Plan) -> None:
        self.plan, self.judge = plan, _opened(plan)
        self.there = plan.out.names()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = [self._counts(part) for part in batch["part"]]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _counts(self, part: _Part) -> dict[str, Any]:
        if part.problem:
            return _row(0, 0, {}, 0, part.problem)
        try:
            rows = self._kept(part)
            fresh = [k for k, row in enumerate(rows) if row.get("reason") in UNREAD] if rows else range(len(part.items))
            if fresh:
                rows = rows or [{} for _ in part.items]
                for k, row in zip(fresh, self._scored(part, fresh), strict=True):
                    rows[k] = row
                self._write(part.name, rows)
        except ConcordError as error:
            return _row(0, 0, {}, 0, f"On the node {_node()}: {error}")
        reasons = Counter(str(row["reason"]) for row in rows if row["score"] is None)
        calls = len(fresh) * getattr(self.judge, "calls_an_item", 0)
        return _row(len(rows), len(rows) - reasons.total(), reasons, calls)

    def _scored(self, part: _Part, fresh: Sequence[int]) -> list[dict[str, Any]]:
        items, request = tuple(part.items[k] for k in fresh), self.plan.request
        if isinstance(self.judge, FusedJudge):
            metrics = {name: [values[k] for k in fresh] for name, values in part.metrics.items()}
            batches = [verdict_batch(self.judge.score(items, metrics=metrics), self.judge.marks, request)]
        else:
            batches = list(scored_batches(request, self.judge, items))
        return [json.loads(line) for batch in batches for line in batch.text.splitlines()]

    def _kept(self, part: _Part) -> list[dict[str, Any]]:
        """The rows of a part that is there already; none of one that is not, or holds other items."""
        if part.name not in self.there:
            return []
        data = self.plan.out.read(part.name)
        try:
            rows = _from_parquet(data) if self.plan.parquet else [json.loads(line) for line in data.splitlines()]
            return rows if [row["item_id"] for row in rows] == [item.item_id for item in part.items] else []
        except (ValueError, KeyError, TypeError):  # damaged: scored again
            return []

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        self.plan.out.write(name, _as_parquet(rows, self.plan.request) if self.plan.parquet else lines.encode())


def _row(n_items: int, n_scored: int, reasons: Mapping[str, int], calls: int, problem: str = "") -> dict[str, Any]:
    told = {"n_items": n_items, "n_scored": n_scored, "calls": calls}
    return told | {"reasons": json.dumps(reasons), "problem": problem}


def _node() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


def _as_parquet(rows: Sequence[Mapping[str, Any]], request: ScoreRequest) -> bytes:
    """The same columns and types in every part."""
    import pyarrow as arrow
    from pyarrow import parquet

    names = (*output.columns(output.more_columns(request)), "raw")
    kinds = {name: arrow.type_for_alias(kind) for name, kind in _KINDS.items()} | {"raw": arrow.list_(arrow.string())}
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in names])
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist(list(rows), schema), sink)
    return bytes(sink.getvalue())


def _from_parquet(data: bytes) -> list[dict[str, Any]]:
    import pyarrow as arrow
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(arrow.BufferReader(data)).to_pylist()
    return [{name: cell for name, cell in row.items() if cell is not None or name == "score"} for row in rows]
