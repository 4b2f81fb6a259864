"""What the nodes of a cluster do for a scoring: look at files, read them in parts, score and write those.

Nothing here needs a cluster; `on_ray` hands it out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np

from core.api.loading import load_judge
from core.data import Mapping as Columns
from core.data import load_items
from core.data.tables import open_table
from core.data.verdict_files import BY_ORDER
from core.errors import ConcordError, GoldenError, JobError, UsageError
from core.export.fused_judge import FusedJudge
from core.export.repeval_judge import RepEvalJudge
from core.records import Item
from core.scoring import output
from core.scoring.item_file import ItemFile, file_digest, validate_items
from core.scoring.mending import UNREAD, models_behind
from core.scoring.output import Batch, verdict_batch
from core.scoring.places import Piece, Place, Stamp, as_words
from core.scoring.request import RowJudge, ScoreRequest
from core.scoring.run import scored_batches
from core.scoring.sizes import batch_size

AnyJudge = RowJudge | FusedJudge

TRIAL = Item("trial", "A text.", "s", source="A source.", context="A context.", references=("A reference.",))
"""What a model in the process is tried on before the start."""

_HELD = attrgetter(*(each.name for each in fields(Item)))
_KINDS = dict.fromkeys(("score", "calibrated", "low", "high", "width", "expected_error", *BY_ORDER), "double")
_KINDS |= {"n_read": "int64", "n_unread": "int64", "abstained": "bool"}


@dataclass(frozen=True)
class InputFile:
    """A file or piece of the input as it was looked at; `mapping` is None where several rows make an item."""

    number: int
    piece: Piece
    digest: str
    mapping: Columns | None
    n_items: int


@dataclass(frozen=True)
class Plan:
    """All that a node must know.  `judge_file` is the content of a file named `request.judge_file`.

    `before` are the parts that earlier calls left; `counted` those that this one need not look at any more.
    """

    request: ScoreRequest
    judge_file: bytes
    source: Place
    out: Place
    parquet: bool
    size: int
    fused: bool
    actors: int = 1
    before: Mapping[str, Stamp] = field(default_factory=dict)
    counted: frozenset[str] = frozenset()

    @property
    def suffix(self) -> str:
        return ".parquet" if self.parquet else ".jsonl"


@dataclass(frozen=True)
class Look:
    """What a node saw of a file or piece: its items without texts, 8 bytes of hash an id, or a `problem`.

    `away` says that the problem is this node's with the file, and not what stands in it.
    """

    piece: Piece
    items: ItemFile | None = None
    mapping: Columns | None = None
    problem: str = ""
    away: bool = False


@dataclass(frozen=True)
class Part:
    """Items of a file in their order, or a `problem`; `metrics` are the numbers that they bring for a fused judge.

    They travel as plain tuples of what an item holds: Ray's pickler takes six times as long for objects.
    """

    name: str
    rows: tuple[tuple[Any, ...], ...] = ()
    metrics: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    problem: str = ""

    @staticmethod
    def plain(items: Iterable[Item]) -> tuple[tuple[Any, ...], ...]:
        """What `rows` are of these items."""
        return tuple(map(_HELD, items))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        return tuple(starmap(Item, self.rows))


@dataclass(frozen=True)
class Outcome:
    """What became of a part, or a `problem`: its items, those that were there before and those asked again of them.

    `marks` and `remarks` are those of the judge that scored it.
    """

    name: str = ""
    n_items: int = 0
    n_scored: int = 0
    n_before: int = 0
    n_again: int = 0
    calls: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    marks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    problem: str = ""


def open_any(request: ScoreRequest) -> AnyJudge:
    """The judge that a request asks for, a fused one too; errors as the file's reader raises them."""
    judge = load_judge(request.judge_file, judge=request.judge or None, accept_edited=request.accept_edited, alone=True)
    if isinstance(judge, FusedJudge) and (request.judge or request.coverage is not None):
        raise UsageError(f"{request.judge_file}: is a fused judge, which takes no --judge and gives no intervals.")
    assert isinstance(judge, AnyJudge)
    return judge


def look_at(plan: Plan, piece: Piece) -> Look:
    """The first look at a file or piece of the input, from this node; what is wrong with it comes back as words."""
    if problem := _unseen(plan, piece.path):
        return Look(piece, problem=problem, away=True)
    try:
        with plan.source.copied(piece) as file:
            items = validate_items(file)
            return Look(piece, replace(items, table=None, mapping=None, kept=()), None if items.kept else items.mapping)
    except GoldenError as error:
        return Look(piece, problem=as_words(error, piece.path))
    except (ConcordError, OSError) as error:
        said = error if isinstance(error, ConcordError) else JobError(f"cannot be read on this node ({error})")
        return Look(piece, problem=as_words(said, piece.path), away=True)


def alike(looks: Sequence[Look]) -> bool:
    """Whether pieces of a file can be read one by one, as the whole would be.

    They have to hold the same columns, ids of their own that come once, and nothing that has to be told.
    """
    first, seen = looks[0].mapping, [look.items for look in looks if look.items is not None]
    if len(seen) < len(looks) or first is None or "item_id" not in first.roles or any(s.findings for s in seen):
        return False
    n_ids = np.unique(np.concatenate([items.hashes for items in seen])).size
    return all(look.mapping == first for look in looks) and n_ids == sum(items.n_items for items in seen)


def _unseen(plan: Plan, path: str) -> str:
    """Why this node cannot read a file of the input that another has seen; "" where it is there."""
    if not plan.source.local or Path(path).exists():
        return ""
    return (
        f"{path} is not on the node {gethostname()}. Every node must see the input at the same path: put it into a "
        "folder of a shared file system, or an object store."
    )


def _opened(plan: Plan) -> AnyJudge:
    """The judge of the plan, with the key of this node and its share of the pace."""
    with TemporaryDirectory(prefix="concord-") as folder:
        file = Path(folder) / plan.request.judge_file.name
        file.write_bytes(plan.judge_file)
        judge = open_any(replace(plan.request, judge_file=file))
    for provider in {id(asked.provider): asked.provider for asked in models_behind(judge)}.values():
        if share := getattr(provider, "share", None):
            share(plan.actors)
    return judge


def read_parts(files: Sequence[InputFile], plan: Plan) -> Iterator[Part]:
    """The parts of input files that are not counted yet."""
    for file in files:
        yield from _parts(plan, file)


def _parts(plan: Plan, file: InputFile) -> Iterator[Part]:
    name = f"part-{file.number:05d}-{{:07d}}{plan.suffix}".format
    left = [k for k in range(-(-file.n_items // plan.size)) if name(k) not in plan.counted]
    if not left:
        return
    if problem := _unseen(plan, file.piece.path):
        yield Part("", problem=problem)
        return
    with plan.source.copied(file.piece) as path:
        if file_digest(path) != file.digest:
            yield Part(
                "", problem=f"{file.piece.path} has changed while it was scored. Add --again to score it as it is."
            )
            return
        for k, part in enumerate(_cut(plan, file, path, left[0]), start=left[0]):  # what lies before is not even parsed
            if name(k) not in plan.counted:
                yield replace(part, name=name(k))


def _cut(plan: Plan, file: InputFile, path: Path, first: int) -> Iterator[Part]:
    """The parts of a file that lies at `path` on this host, from the `first` on, without their names."""
    if plan.fused or file.mapping is None:
        golden = load_items(path)
        for start in range(first * plan.size, len(golden.items), plan.size):
            metrics = {name: values[start : start + plan.size] for name, values in golden.metrics.items()}
            yield Part("", Part.plain(golden.items[start : start + plan.size]), metrics)
        return
    table = open_table(path, max_mb=None, max_rows=None)
    for items in ItemFile(path, file.digest, 0, {}, (), table, file.mapping).batches(plan.size, first * plan.size):
        yield Part("", Part.plain(items))


class Scorer:
    """An actor: looks at files, and scores parts and writes their lines, several at once where threads ask it to."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.there = plan, dict[str, Stamp]()
        self._judge: AnyJudge | None = None
        self._opening = Lock()

    def answer(self) -> Iterator[None]:
        """It is there, and reaches whoever asked."""
        yield None

    def alive(self) -> None:
        """It is not frozen."""

    def look(self, piece: Piece) -> Look:
        """`look_at` a file or piece, from this node."""
        return look_at(self.plan, piece)

    def why_not_ready(self, with_key: Collection[str], mark: str) -> str:
        """Why this node cannot do its part; "" where it can.

        `with_key` are the specs of the judges for which the host that asked has a key, `mark` is a file that it put
        into the output.
        """
        try:
            for asked in models_behind(self.judge):
                if asked.spec in with_key and not getattr(asked.provider, "has_key", True):
                    name = getattr(asked.provider, "key_name", "") or "OPENAI_API_KEY"
                    return f"{name} is not set. Set it in the environment that the node is started in (ray start)."
                if closed := getattr(asked.provider, "why", None):  # nobody let the model in here
                    return str(closed)
                if (served := getattr(asked.provider, "why_not_served", None)) and (problem := served(asked.model)):
                    return str(problem)
                _ = getattr(asked.provider, "ready", None)  # a model in the process is loaded now
            if isinstance(self.judge, RepEvalJudge):
                self.judge.score([TRIAL])
            with self.plan.out.marked():
                if not self.plan.out.holds(mark):
                    return (
                        f"{self.plan.out.path} is another folder than on the host that asked. Give an --out that all "
                        "nodes share: a folder of a shared file system, or an object store."
                    )
        except ConcordError as error:
            return str(error)
        return ""

    def lacking(self) -> dict[str, str]:
        """Part of a fused judge → why it cannot be computed on this node."""
        return self.judge.lacking() if isinstance(self.judge, FusedJudge) else {}

    def begin(self, plan: Plan, there: dict[str, Stamp]) -> None:
        """Score by this plan from now on; `there` is what the output holds."""
        self.plan, self.there = plan, there

    @property
    def judge(self) -> AnyJudge:
        """Opened by the first call that needs it."""
        with self._opening:
            if self._judge is None:
                self._judge = _opened(self.plan)
            return self._judge

    def score(self, part: Part) -> Outcome:
        """What became of a part, its lines written."""
        if part.problem:
            return Outcome(problem=part.problem)
        try:
            rows = self._kept(part)
            n_before = len(rows) if part.name in self.plan.before else 0
            fresh = self._to_ask(part, rows)
            n_asked = len(fresh) if fresh or n_before else len(rows)  # of this call, by a node lost before it said so
            reasons = self._score_whole(part) if fresh and not rows else self._score_some(part, rows, fresh)
        except ConcordError as error:
            return Outcome(problem=f"On the node {gethostname()}: {error}")
        return Outcome(
            part.name,
            len(part.items),
            len(part.items) - reasons.total(),
            n_before,
            n_asked if n_before else 0,
            n_asked * getattr(self.judge, "calls_an_item", 0),
            reasons,
            (*self.judge.marks,),
            (*getattr(self.judge, "remarks", ()),),
        )

    def _score_whole(self, part: Part) -> Counter[str]:
        """Score and write a part that is not there, and count why items are unscored."""
        batches = self._scored(part, range(len(part.items)))
        if self.plan.parquet:
            self._write(part.name, _rows_in(batches))
        else:
            self.plan.out.write(part.name, "".join(batch.text for batch in batches).encode())
        return sum((Counter(batch.reasons) for batch in batches), Counter())

    def _score_some(self, part: Part, rows: list[dict[str, Any]], fresh: Sequence[int]) -> Counter[str]:
        """Score the items at the places `fresh` anew, among the `rows` of a part that is there."""
        if fresh:
            for k, row in zip(fresh, _rows_in(self._scored(part, fresh)), strict=True):
                rows[k] = row
            self._write(part.name, rows)
        return Counter(str(row["reason"]) for row in rows if row["score"] is None)

    def _to_ask(self, part: Part, rows: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """The items to score now: all of a part that is not there, what an earlier call left unread of one that is."""
        if not rows:
            return range(len(part.items))
        if self.plan.request.keep_unread or self.there[part.name] != self.plan.before.get(part.name):
            return ()
        return [k for k, row in enumerate(rows) if row.get("reason") in UNREAD]

    def _scored(self, part: Part, fresh: Sequence[int]) -> list[Batch]:
        items, request = tuple(part.items[k] for k in fresh), self.plan.request.settled(self.judge)
        if isinstance(self.judge, FusedJudge):
            metrics = {name: [values[k] for k in fresh] for name, values in part.metrics.items()}
            verdicts = self.judge.score(items, metrics=metrics, of_more=True)
            return [verdict_batch(items, verdicts, self.judge.marks, request)]
        size = batch_size(self.judge)
        several = (items[k : k + size] for k in range(0, len(items), size))
        return list(scored_batches(request, self.judge, several, len(items)))

    def _kept(self, part: Part) -> list[dict[str, Any]]:
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
        self.plan.out.write(
            name, _as_parquet(rows, self.plan.request.settled(self.judge)) if self.plan.parquet else lines.encode()
        )


def _rows_in(batches: Sequence[Batch]) -> list[dict[str, Any]]:
    return [json.loads(line) for batch in batches for line in batch.text.split("\n") if line]


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
