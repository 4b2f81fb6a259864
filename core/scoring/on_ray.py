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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.errors import GoldenError, JobError, JudgeError, UsageError
from core.export.fused_judge import FusedJudge
from core.progress import SILENT, Progress, Stage
from core.records import Finding
from core.scoring import output
from core.scoring.item_file import ItemFile, check_needs
from core.scoring.mending import check_unread, model_behind
from core.scoring.output import Done
from core.scoring.parts import AnyJudge, InputFile, Look, Plan, Scorer, look_at, open_any, read_parts, why_not_ready
from core.scoring.places import Place, item_files
from core.scoring.request import ScoredFile, ScoreRequest

PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what a lost node costs at most, an actor."""

MANIFEST = "_scoring.json"


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


def _manned(ray: Any, plan: Plan, judge: AnyJudge) -> tuple[Plan, dict[str, Any]]:
    """How many actors with what each, after every node has said that it can do its part."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
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
    if not n:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    if (asked := model_behind(judge)) is not None and (most := getattr(asked.provider, "concurrency", None)):
        n = min(n, most)
    plan = replace(plan, actors=n)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    has_key = bool(asked and getattr(asked.provider, "has_key", False))
    check = ray.remote(num_cpus=0)(why_not_ready)
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


def _begin(plan: Plan, identity: Mapping[str, Any]) -> int:
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
) -> Done:
    """Run the pipeline until all parts are there; with what is left of the cluster, where a node was lost."""
    kept, (plan, options) = -1, manned
    while True:
        done = Done()
        try:
            for row in _scored_parts(plan, files, options):
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


def _scored_parts(plan: Plan, files: Sequence[InputFile], options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from ray import data

    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it sets its own level when it is imported
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
