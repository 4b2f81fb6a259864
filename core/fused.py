"""Fusion from Python or the command line: `fuse` joins parts by name; its result scores other items and is saved."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from core.calibration.settings import CalibrationSettings, SplitKind
from core.comparison import usual_level
from core.data.texts import KnownTexts
from core.errors import UsageError
from core.export import verdict_lines
from core.export.fused_file import fused_card
from core.export.fused_judge import FusedJudge
from core.export.judge_file import yaml_text
from core.files import write_text
from core.fusion.stack import Fusion, StackSettings
from core.fusion.stack import fuse as fuse_parts
from core.judge_loading import restored
from core.projects.fusion_inline import ModelFusion, fuse_by_model
from core.projects.fusion_parts import Bench, Gathered, bench_of, gather, sides_of
from core.providers.base import ReplyStore
from core.records import GoldenSet, Item, Level, Scored, Statistic, Unscored, Verdict
from core.settings import Settings
from core.verdicts import Verdicts

__all__ = ["FusedByModel", "FusedRun", "fuse"]

NO_JUDGE = "--method llm needs --judge (judge= in Python), and no other method takes one."
NO_SCORE = (
    "A fusion by a language model rates the held-out items of its own golden set (they are in verdicts). To rate other "
    "items, fuse with ridge, nnls or average."
)
ALSO = "--also (also= in Python) is for the method llm, which rates several aspects in one call."


@dataclass(frozen=True)
class FusedRun:
    """A fusion with weights beside its parts (`fusion`), and what they were gathered from."""

    bench: Bench = field(repr=False)
    gathered: Gathered = field(repr=False)
    fusion: Fusion

    @cached_property
    def judge(self) -> FusedJudge:
        """The fused judge, made at the first use: it scores as `core.load_judge` does with the saved `fused.yaml`."""
        here, replies = self.bench.settings, self.bench.replies
        return FusedJudge.of(self._card(), lambda card: restored(card, here, replies, "fusion"), where="fusion")

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """One verdict per item, in order; `metrics` are the numbers for parts that are handed in.

        `judge.marks` must stand with the verdicts.  UsageError when no part can be computed on these items.
        """
        return self.judge.score(items, metrics=metrics)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `fuse --json` prints; `out` is the folder it was written to."""
        body = {"aspect": self.bench.aspect} | self.fusion.as_json()
        body["left_out"] = {**self.gathered.left_out, **body["left_out"]}
        return body | {"out": out}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, `verdicts.jsonl` and `summary.json` into `folder`; return the last."""
        out, body, judge = Path(folder), self.as_json(str(folder)), self.fusion.judge
        unscored = {one.item_id: one for one in judge.unscored}
        verdicts = [
            unscored[item_id] if item_id in unscored else Scored(item_id, float(value))
            for item_id, value in zip(self.bench.golden.item_ids, judge.values, strict=True)
        ]
        write_text(out / "fused.yaml", yaml_text(self._card()))
        write_text(out / "verdicts.jsonl", "".join(verdict_lines(verdicts)))
        _write_summary(out, body)
        return body

    def _card(self) -> dict[str, Any]:
        body, bench = self.as_json(), self.bench
        return fused_card(
            bench.golden,
            bench.aspect,
            texts=KnownTexts.of(bench.golden, bench.split.calibration, bench.split.held_out),
            state=self.fusion.state,
            parts=list(self.gathered.recipes.values()),
            alignment=self.fusion.fused,
            measured={name: body[name] for name in ("parts", "left_out", "n_fit", "notes")},
        )


@dataclass(frozen=True)
class FusedByModel:
    """A fusion that a language model rated by a plan (`fusion`), on the held-out items alone."""

    bench: Bench = field(repr=False)
    gathered: Gathered = field(repr=False)
    fusion: ModelFusion
    spec: str
    n_fit: int
    n_report: int

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """UsageError always: a plan is fitted to no numbers, and the parts of other items were never computed."""
        raise UsageError(NO_SCORE)

    @property
    def verdicts(self) -> dict[str, Sequence[Verdict]]:
        """Aspect → verdicts on the items reported on; ``"overall"`` where the model rated all in all."""
        found = self.fusion
        verdicts = {self.bench.aspect: found.verdicts} | {name: one.verdicts for name, one in found.also.items()}
        return {**verdicts, "overall": found.overall} if found.overall else {**verdicts}

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `fuse --json` prints; `out` is the folder it was written to."""
        found = self.fusion
        return {
            "aspect": self.bench.aspect,
            "method": "llm",
            "judge": self.spec,
            "fused": found.fused.as_json(),
            "parts": {name: one.as_json() for name, one in found.parts.items()},
            "left_out": dict(self.gathered.left_out),
            "without": {},
            "best_part": found.best_part,
            "against_best": found.against_best.as_json(),
            "plan": found.plan.text,
            "plan_origin": found.plan.origin,
            "also": {name: one.fused.as_json() for name, one in found.also.items()},
            "calls": found.calls,
            "requests": found.usage.requests,
            "cached": found.usage.cached,
            "tokens": found.usage.prompt_tokens + found.usage.completion_tokens,
            "cost": found.usage.cost,
            "unscored": {name: _unread(one) for name, one in self.verdicts.items()},
            "n_fit": self.n_fit,
            "n_report": self.n_report,
            "notes": list(found.notes),
            "out": out,
        }

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `plan.txt`, `summary.json` and a file of verdicts an aspect into `folder`; return the summary."""
        out, body = Path(folder), self.as_json(str(folder))
        write_text(out / "plan.txt", self.fusion.plan.text + "\n")
        _write_verdicts(out, self.bench.aspect, self.verdicts)
        _write_summary(out, body)
        return body


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[str],
    *,
    method: Literal["average", "ridge", "nnls", "llm"] = "ridge",
    judge: str = "",
    plan: str = "",
    also: Sequence[str] = (),
    statistic: Statistic = "spearman",
    level: Level | None = None,
    split: SplitKind = "sources",
    calibration_share: float = 0.5,
    bootstrap: int = 1000,
    seed: int = 0,
    replies: ReplyStore | None = None,
    out: Path | str | None = None,
    on_part: Callable[[str], None] = lambda name: None,
) -> FusedRun | FusedByModel:
    """Fuse `parts` on one aspect and tell the fusion beside them on held-out items (METHODS §6).

    The arguments are the options of `python -m core fuse`: `parts` are names such as "offline", "overlap", "chrf",
    "metric_<name>" or "judge:FILE"; one that cannot work is left out with its reason.  `method` "llm" asks the judge
    `judge` (a SPEC) by `plan`: a plan's text, "model" to let it write one, "" for one that is measured; `also` are
    aspects that it rates in the same calls.  `replies` keeps a remote judge's replies, `out` saves the result there,
    `on_part` hears the name of each part before its turn.  UsageError for parts that mean nothing or too few usable
    ones, AspectError for labels that cannot rank anything.
    """
    if (method == "llm") != bool(judge):
        raise UsageError(NO_JUDGE)
    if also and method != "llm":
        raise UsageError(ALSO)
    at = level or usual_level(golden, aspect) if aspect in golden.aspects else "dataset"
    chosen = CalibrationSettings(
        statistic=statistic, level=at, split=split, calibration_share=calibration_share, seed=seed
    )
    bench = bench_of(golden, aspect, chosen, Settings.from_environment(), replies)
    gathered = gather(bench, parts, on_part)
    how = StackSettings(statistic=statistic, level=at, seed=seed, resamples=bootstrap)
    sides = sides_of(bench, gathered)
    fused: FusedRun | FusedByModel
    if method == "llm":
        rated = fuse_by_model(bench, gathered, sides, how, spec=judge, plan=plan, also=also)
        fused = FusedByModel(bench, gathered, rated, judge, len(sides.fit), len(sides.report))
    else:
        how = replace(how, method=method)
        fused = FusedRun(bench, gathered, fuse_parts(golden, aspect, gathered.parts, how, sides))
    if out is not None:
        fused.save(out)
    return fused


def _write_verdicts(out: Path, aspect: str, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """verdicts.jsonl for the aspect itself, and a file of its own for each other and for all in all."""
    taken: set[str] = set()
    for k, (name, rows) in enumerate(verdicts.items()):
        slug = "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:60]
        slug = f"{slug}-{k}" if not slug or slug in taken else slug
        taken.add(slug)
        file = "verdicts.jsonl" if name == aspect else f"verdicts-{slug}.jsonl"
        write_text(out / file, "".join(verdict_lines(rows)))


def _unread(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Reason → how many verdicts have no score for it."""
    return dict(Counter(one.reason for one in verdicts if isinstance(one, Unscored)))


def _write_summary(out: Path, body: Mapping[str, Any]) -> None:
    write_text(out / "summary.json", json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
