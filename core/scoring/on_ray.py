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
import logging
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.data.findings import Finding
from core.errors import GoldenError, JobError, JudgeError, UsageError
from core.export.fused_judge import FusedJudge
from core.progress import SILENT, Progress, Stage
from core.scoring import output
from core.scoring.item_file import ItemFile, check_needs
from core.scoring.mending import check_unread, model_behind
from core.scoring.output import Done
from core.scoring.parts import (
    AnyJudge,
    InputFile,
    Look,
    Plan,
    Scorer,
    answer,
    look_at,
    open_any,
    read_parts,
    why_not_ready,
)
from core.scoring.places import Place, Stamp, item_files
from core.scoring.request import ScoredFile, ScoreRequest
from core.wording import counted

PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what a lost node costs at most, an actor."""

MANIFEST = "_scoring.json"

PATIENCE, PING = 60.0, 20.0
"""Seconds that nodes get to answer before they are left out, and that one question waits for them."""

ROUNDS = 4
"""Losses in a row, with no part finished between them, after which the cluster is given up."""


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
    with closing(open_any(request)) as judge:
        asks = model_behind(judge) is not None or (isinstance(judge, FusedJudge) and judge.by_model)
        plan = Plan(
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
            plan, options, silent = _manned(ray, plan, judge, first=True)
        identity = output.identity_of(request, items, judge) | {"part": plan.size}
        plan = replace(plan, before=_begin(plan, identity))
        total = _score_all(ray, address, (plan, options), files, n_items=items.n_items, judge=judge, progress=progress)
        _note(plan, identity, total.done)
        return ScoredFile(
            *(items.n_items, total.done.items, total.done.n_scored, total.n_before, total.done.calls, True),
            time.perf_counter() - started,
            judge.marks,
            dict(total.done.reasons.most_common()),
            items.findings,
            total.n_again,
            remarks=(*getattr(judge, "remarks", ()), *_remarks(silent, total.n_losses)),
        )


@dataclass(frozen=True)
class _Total:
    """What the parts came to: as `ScoredFile`; `n_losses` times nodes or actors went away on the way."""

    done: Done = field(default_factory=Done)
    n_before: int = 0
    n_again: int = 0
    n_losses: int = 0

    def add(self, row: Mapping[str, Any]) -> _Total:
        done = Done(
            self.done.items + int(row["n_items"]),
            self.done.calls + int(row["calls"]),
            n_scored=self.done.n_scored + int(row["n_scored"]),
            reasons=self.done.reasons + Counter(json.loads(row["reasons"])),
        )
        return replace(
            self, done=done, n_before=self.n_before + int(row["n_before"]), n_again=self.n_again + int(row["n_again"])
        )


def _remarks(silent: Sequence[str], n_losses: int) -> list[str]:
    """What of the cluster has to be known."""
    names = ", ".join(silent)
    left_out = f"Left out, because there was no answer within {PATIENCE:.0f} seconds: the nodes {names}."
    lost = (
        f"Nodes or processes of the cluster were lost {counted(n_losses, 'time')}; what was unfinished was done anew."
    )
    return [*([left_out] if silent else []), *([lost] if n_losses else [])]


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _looked_at(ray: Any, plan: Plan, paths: Sequence[str]) -> tuple[ItemFile, list[InputFile]]:
    """Every file looked at by some node: what they hold together, and each as it is to be read."""
    task = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(look_at)
    looks: list[Look] = ray.get([task.remote(plan, path) for path in paths])
    files, filled, findings = [], Counter[str](), list[Finding]()
    hashes, whole = [], hashlib.sha256()
    for number, (path, look) in enumerate(zip(paths, looks, strict=True)):
        if look.items is None:
            raise GoldenError(look.problem)
        files.append(InputFile(number, path, look.items.digest, look.mapping))
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


def _manned(ray: Any, plan: Plan, judge: AnyJudge, *, first: bool) -> tuple[Plan, dict[str, Any], list[str]]:
    """How many actors with what each, and the nodes left out because they are silent.

    Before the `first` part every node says whether it can do its work; JobError for one that cannot.
    """
    nodes, silent = _answering(ray)
    gpus = int(sum(node["Resources"].get("GPU", 0) for node in nodes))
    cpus = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
    options: dict[str, Any]
    if judge.spec.startswith("hf:") and gpus:
        n, options = gpus, {"num_gpus": 1, "num_cpus": 0}
        nodes = [node for node in nodes if node["Resources"].get("GPU", 0)]
    elif model_behind(judge) is not None:  # waits for an endpoint, or takes all cores of its node
        n, options = len(nodes), {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
    else:
        n, options = cpus, {"num_cpus": 1}
        nodes = [node for node in nodes if node["Resources"].get("CPU", 0) >= 1]
    if not n:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    if (asked := model_behind(judge)) is not None and (most := getattr(asked.provider, "concurrency", None)):
        n = min(n, most)
    plan = replace(plan, actors=n)
    if first:
        has_key = bool(asked and getattr(asked.provider, "has_key", False))
        task = ray.remote(num_cpus=0)(why_not_ready)
        waiting = {
            node["NodeManagerAddress"]: _on(task, node).remote(plan, has_key, str(node["NodeID"])) for node in nodes
        }
        problems = [f"{name}: {problem}" for name, reply in waiting.items() if (problem := ray.get(reply))]
        if problems:
            raise JobError(f"Nothing was started. On {'; on '.join(problems)}")
    return plan, options, silent


def _answering(ray: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The nodes that answer, and the addresses of those that Ray counts as alive though they do not.

    After a loss Ray takes a while to notice: it is asked again until all that it counts answer, or `PATIENCE` is over.
    """
    task, end = ray.remote(num_cpus=0, max_retries=0)(answer), time.monotonic() + PATIENCE
    while True:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        waiting = {_on(task, node).remote(): node for node in nodes}
        ready, late = ray.wait(list(waiting), num_returns=len(waiting), timeout=PING) if waiting else ([], [])
        answering = [waiting[reply] for reply in ready if _came(ray, reply)]
        for reply in late:
            ray.cancel(reply)
        if (nodes and len(answering) == len(nodes)) or time.monotonic() > end:
            break
        time.sleep(1)
    if not answering:
        raise JobError(f"No node of the Ray cluster has answered within {PATIENCE:.0f} seconds. Start them anew.")
    return answering, [node["NodeManagerAddress"] for node in nodes if node not in answering]


def _came(ray: Any, reply: Any) -> bool:
    try:
        ray.get(reply)
    except ray.exceptions.RayError:
        return False
    return True


def _on(task: Any, node: Mapping[str, Any]) -> Any:
    """The task, to be done on this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))


def _begin(plan: Plan, identity: Mapping[str, Any]) -> dict[str, Stamp]:
    """Make the output ready; the parts of this very scoring that are there.  JobError for what is of another."""
    names = plan.out.stamps()
    parts = {name: stamp for name, stamp in names.items() if name.startswith("part-")}
    if plan.request.again:
        for name in parts:
            plan.out.drop(name)
        parts = {}
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
    return parts


def _note(plan: Plan, identity: Mapping[str, Any], done: Done | None) -> None:
    body = {"identity": identity, "done": None if done is None else asdict(done)}
    plan.out.write(MANIFEST, json.dumps(body, ensure_ascii=False, allow_nan=False).encode())


# ── the pipeline ─────────────────────────────────────────────────────────────────────────────────────────────


def _score_all(
    ray: Any,
    address: str,
    manned: tuple[Plan, dict[str, Any]],
    files: Sequence[InputFile],
    *,
    n_items: int,
    judge: AnyJudge,
    progress: Progress,
) -> _Total:
    """Run the pipeline until all parts are there; with what is left of the cluster, where a node was lost."""
    total, counted_parts, in_vain, (plan, options) = _Total(), set[str](), 0, manned
    while True:
        try:
            for row in _scored_parts(replace(plan, counted=frozenset(counted_parts)), files, options):
                if row["problem"]:
                    raise JudgeError(str(row["problem"]))
                total, in_vain = total.add(row), 0
                counted_parts.add(str(row["name"]))
                progress.publish(Stage("scoring", "scoring", total.done.items, n_items))
                check_unread(plan.request, judge, Done(), total.done)
        except ray.exceptions.RayError:
            in_vain += 1
            with plain_errors(address):
                if in_vain == ROUNDS:
                    raise
                message = "scoring on what is left of the cluster"
                progress.publish(Stage("scoring", message, total.done.items, n_items))
                plan, options, _ = _manned(ray, plan, judge, first=False)
            total = replace(total, n_losses=total.n_losses + 1)
            continue
        if total.done.items != n_items:
            raise JobError(f"{total.done.items:,} of {n_items:,} items came: the input has changed. Add --again.")
        return total


def _scored_parts(plan: Plan, files: Sequence[InputFile], options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from ray import data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # a loss is told in a sentence; it sets its own level
    context = data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1  # a block is a part: what is handed out, and what is lost with a node
    read = data.from_items([{"file": file} for file in files], override_num_blocks=len(files)).map_batches(
        read_parts, batch_size=1, fn_args=(plan,), num_cpus=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the two options of actors have no names of their own in this version
        scored = read.map_batches(
            Scorer,
            batch_size=1,
            fn_constructor_args=(plan,),
            compute=data.ActorPoolStrategy(size=plan.actors),
            max_restarts=0,  # an actor without a place would be waited for for ever: `_score_all` counts anew
            max_task_retries=0,
            **options,
        )
    yield from scored.iter_rows()
