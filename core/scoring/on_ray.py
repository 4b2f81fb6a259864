"""Scoring on a Ray cluster: parts of the input are streamed to judges on the nodes, which write them.

::

    OUT/_scoring.json                    what is scored with what (digests), and the counts once all is done
    OUT/part-00003-0000012.parquet       part 12 of the fourth file: the names' order is that of the items

A part is a run of items of one file, the same in every call.  One that is there, and holds its items, is not scored
again: finished parts are the checkpoint, whoever lost a node or was killed.  Nodes read and write for themselves, so
input and output lie where all see them; they reach no database.  The judge file goes with the plan; keys do not.

Readers are Ray's streaming tasks and judges its actors, handed out by its `ActorPool`.  Ray Data would do the same; its
own actors and imports took half as long again as 20,000 items (``tests/bench/bench_ray.py``).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.data.findings import Finding
from core.errors import GoldenError, JobError, JudgeError, UsageError
from core.export.fused_judge import FusedJudge
from core.progress import SILENT, Progress, Stage
from core.scoring import output
from core.scoring.by_aspect import check_parts
from core.scoring.crew import PATIENCE, Crew, Each, has_gpus, seats
from core.scoring.identity import identity_of
from core.scoring.item_file import ItemFile
from core.scoring.mending import check_unread, models_behind
from core.scoring.output import Done
from core.scoring.parts import (
    AnyJudge,
    InputFile,
    Look,
    Outcome,
    Plan,
    Scorer,
    alike,
    look_at,
    open_any,
    read_parts,
)
from core.scoring.places import Piece, Place, Stamp, item_files
from core.scoring.request import ScoredFile, ScoreRequest
from core.scoring.sizes import part_size
from core.wording import counted

PARTS_AT_ONCE = 4
"""Parts that an actor has under way of a judge that waits for an endpoint: slow replies of one hold up no others."""

MANIFEST = "_scoring.json"

_PART_NAME = re.compile(r"part-\d{5}-\d{7}\.(?:jsonl|parquet)")

ACTORS_A_READER = 16
"""Reading and sending an item takes about a twentieth of the time that the offline judge takes to score it."""

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
    if request.by_aspect:
        raise UsageError("--ray takes one --judge-file: score with the judge of one aspect after the other.")
    place, paths = item_files(source)
    ray = connected(address)
    Place(out).check_rights()
    with closing(open_any(request)) as judge:
        plan = Plan(
            replace(request, out=Path("part.jsonl"), items=Path("items"), workers=1),
            *(request.judge_file.read_bytes(), place, Place(out), Path(out.partition("?")[0]).suffix != ".jsonl"),
            part_size(judge),
            isinstance(judge, FusedJudge),
        )
        progress.publish(Stage("reading", "reading", 0, 0))
        with plain_errors(address), closing(_Scoring(ray, plan, judge, progress)) as scoring:
            items, files = scoring.looked_at(paths)
            if not isinstance(judge, FusedJudge):
                check_parts(items, judge)
            scoring.check_ready()
            identity = identity_of(request, items, judge) | {"part": plan.size}
            scoring.begin(_begin(plan, identity))
            total = scoring.score_all(files, items.n_items)
        _note(plan, identity, total.done)
        return ScoredFile(
            *(items.n_items, total.done.items, total.done.n_scored, total.n_before, total.done.calls, True),
            time.perf_counter() - started,
            tuple(dict.fromkeys((*judge.marks, *total.marks))),
            dict(total.done.reasons.most_common()),
            items.findings,
            total.n_again,
            remarks=(*total.remarks, *_remarks(scoring.crew.silent, total.n_losses)),
        )


@dataclass(frozen=True)
class _Total:
    """What the parts came to: as `ScoredFile`; `n_losses` times nodes or actors went away on the way."""

    done: Done = field(default_factory=Done)
    n_before: int = 0
    n_again: int = 0
    n_losses: int = 0
    marks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def add(self, part: Outcome) -> _Total:
        done = Done(
            self.done.items + part.n_items,
            self.done.calls + part.calls,
            n_scored=self.done.n_scored + part.n_scored,
            reasons=self.done.reasons + part.reasons,
        )
        return replace(
            self,
            done=done,
            n_before=self.n_before + part.n_before,
            n_again=self.n_again + part.n_again,
            marks=tuple(dict.fromkeys((*self.marks, *part.marks))),
            remarks=tuple(dict.fromkeys((*self.remarks, *part.remarks))),
        )


def _remarks(silent: Sequence[str], n_losses: int) -> list[str]:
    """What of the cluster has to be known."""
    names = ", ".join(silent)
    left_out = (
        f"Left out, because no process there answered within {PATIENCE:.0f} seconds or it ended before (look at its "
        f"memory and disk, and start it anew): the nodes {names}."
    )
    lost = (
        f"Nodes or processes of the cluster were lost {counted(n_losses, 'time')}; what was unfinished was done anew."
    )
    return [*([left_out] if silent else []), *([lost] if n_losses else [])]


class _Scoring:
    """The actors of one scoring; `close` ends them."""

    def __init__(self, ray: Any, plan: Plan, judge: AnyJudge, progress: Progress) -> None:
        self.ray, self.judge, self.progress = ray, judge, progress
        self.each, self.most = _places(ray, judge)
        self.plan = plan
        self.crew = self._new_crew()

    def close(self) -> None:
        self.crew.close()

    def looked_at(self, paths: Sequence[str]) -> tuple[ItemFile, list[InputFile]]:
        """Every file looked at: what they hold together, and each as it is to be read.

        A single short one is looked at here, while the actors start; so is a long one whose pieces cannot stand alone.
        """
        pieces = [Piece(path) for path in paths]
        if len(paths) == 1 and not self.plan.fused:
            pieces = self.plan.source.pieces(paths[0])
        if len(pieces) == 1:
            looks = [look_at(self.plan, pieces[0])]
            self.crew.wait_for_all()
            return _together(looks)
        self.crew.wait_for_all()
        came = {look.piece: look for look in self.crew.answers("look", pieces) if look is not None}
        looks = [came[piece] for piece in pieces]
        if len(paths) == 1 and not any(look.away for look in looks) and not alike(looks):
            looks = [look_at(self.plan, Piece(paths[0]))]
        return _together(looks)

    def check_ready(self) -> None:
        """JobError with what a node lacks for its part, before anything is scored."""
        with_key = {asked.spec for asked in models_behind(self.judge) if getattr(asked.provider, "has_key", False)}
        with self.plan.out.marked() as mark:
            found = self.crew.each("why_not_ready", with_key, mark)
        problems = {name: problem for name, problem in found if problem}
        lacking = self.crew.each("lacking")
        for name, parts in lacking:  # what all lack counts as its mean, as in one process
            apart = [part for part in parts if any(part not in others for _, others in lacking)]
            if apart and name not in problems:
                problems[name] = f"the part {apart[0]} cannot be computed: {parts[apart[0]]}"
        if problems:
            said = "; on ".join(f"{name}: {problem}" for name, problem in problems.items())
            raise JobError(f"Nothing was started. On {said}")

    def begin(self, before: Mapping[str, Stamp]) -> None:
        """Have all actors score by the plan, `before` being the parts that are there."""
        self.plan = replace(self.plan, before=before)
        self.crew.tell("begin", self.plan, before)

    def score_all(self, files: Sequence[InputFile], n_items: int) -> _Total:
        """Score until all parts are there; with what is left of the cluster, where a node was lost."""
        total, counted_parts, in_vain = _Total(), set[str](), 0
        while True:
            try:
                for part in self._outcomes(files, counted_parts):
                    if part is not None:
                        if part.problem:
                            raise JudgeError(part.problem)
                        total, in_vain = total.add(part), 0
                        counted_parts.add(part.name)
                        check_unread(self.plan.request, self.judge, Done(), total.done)
                    self.progress.publish(Stage("scoring", "scoring", total.done.items, n_items))
            except self.ray.exceptions.RayError:
                in_vain += 1
                if in_vain == ROUNDS:
                    raise
                message = "scoring on what is left of the cluster"
                self.progress.publish(Stage("scoring", message, total.done.items, n_items))
                self._man_again()
                total = replace(total, n_losses=total.n_losses + 1)
                continue
            if total.done.items != n_items:
                raise JobError(f"{total.done.items:,} of {n_items:,} items came: the input has changed. Add --again.")
            return total

    def _outcomes(self, files: Sequence[InputFile], counted_parts: Collection[str]) -> Iterator[Outcome | None]:
        """What becomes of the parts that are not counted yet, as they are done; None from time to time meanwhile.

        Readers run ahead of the actors, so that neither waits and nothing piles up.
        """
        n = min(len(files), math.ceil(len(self.crew.actors) / ACTORS_A_READER))
        left = replace(self.plan, counted=frozenset(counted_parts))
        readers = self.crew.streamed(read_parts, [(files[k::n], left) for k in range(n)])
        with closing(readers) as parts, closing(self.crew.answers("score", parts)) as outcomes:
            yield from outcomes

    def _man_again(self) -> None:
        """Go on with the actors that are left, which have their judges at hand; with new ones where there are none."""
        if not self.crew.left_after_a_loss():
            self.crew = self._new_crew()
            self.crew.wait_for_all()
        self.crew.tell("begin", self.plan, self.plan.out.stamps())

    def _new_crew(self) -> Crew:
        n_actors = len(seats(self.ray, self.each)[: self.most])  # known to each: the first call shares out the pace
        self.plan = replace(self.plan, actors=n_actors)
        at_once = PARTS_AT_ONCE if _waits(self.judge) else 1
        return Crew.of(self.ray, Scorer, self.plan, each=self.each, most=self.most, at_once=at_once)


def _waits(judge: AnyJudge) -> bool:
    """Whether the judge awaits its replies, so that several threads may ask at once."""
    asked = () if isinstance(judge, FusedJudge) else models_behind(judge)
    return bool(asked) and all(each.awaits for each in asked)


def _places(ray: Any, judge: AnyJudge) -> tuple[Each, int | None]:
    """What takes one actor, and how many there are at most."""
    if judge.spec.startswith(("hf:", "repeval:")) or (isinstance(judge, FusedJudge) and judge.runs_models):
        return ("gpu" if has_gpus(ray) else "whole node"), None
    asked = [each.provider for each in models_behind(judge)]
    if not asked:
        return "cpu", None
    if all(getattr(each, "on_this_host", False) for each in asked):  # a model server on each node
        return ("gpu node" if has_gpus(ray) else "node"), None
    return "node", min((n for each in asked if (n := getattr(each, "concurrency", None))), default=None)


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _together(looks: Sequence[Look]) -> tuple[ItemFile, list[InputFile]]:
    """What files hold together, and each as it is to be read."""
    files, filled, findings = [], Counter[str](), list[Finding]()
    hashes, whole = [], hashlib.sha256()
    for number, look in enumerate(looks):
        if look.items is None:
            raise GoldenError(look.problem)
        files.append(InputFile(number, look.piece, look.items.digest, look.mapping, look.items.n_items))
        filled.update(look.items.filled)
        findings += look.items.findings
        hashes.append(look.items.hashes)
        whole.update(f"{look.items.digest}\n".encode())
    _check_apart([look.piece.path for look in looks], hashes)
    n_items = sum(len(of_file) for of_file in hashes)
    digest = looks[0].items.digest if len(looks) == 1 and looks[0].items else f"sha256:{whole.hexdigest()}"
    return ItemFile(Path(looks[0].piece.path), digest, n_items, filled, tuple(findings)), files


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


def _begin(plan: Plan, identity: Mapping[str, Any]) -> dict[str, Stamp]:
    """Make the output ready; the parts of this very scoring that are there.  JobError for what is of another."""
    names = plan.out.stamps()
    parts = {name: stamp for name, stamp in names.items() if _PART_NAME.fullmatch(name)}
    if foreign := sorted(name for name in names if name.startswith("part-") and name not in parts):
        raise JobError(
            f"{plan.out.address} holds {counted(len(foreign), 'file')} of something else ({foreign[0]}), which would "
            "look like a part of this scoring. Give another --out."
        )
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
            differs = output.what_differs(kept, identity) if kept else ""
            raise JobError(
                f"{plan.out.address} holds {counted(len(parts), 'part')} of another scoring: "
                f"{differs or 'what they were made of is not known'}. Give another --out, or add --again to drop "
                f"{'it' if len(parts) == 1 else 'them'} and score from the start."
            )
    _note(plan, identity, None)
    return parts


def _note(plan: Plan, identity: Mapping[str, Any], done: Done | None) -> None:
    body = {"identity": identity, "done": None if done is None else vars(done)}
    plan.out.write(MANIFEST, json.dumps(body, ensure_ascii=False, allow_nan=False).encode())
