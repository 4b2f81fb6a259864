"""The command that joins several judges and metrics into one (fuse), and scoring with what it wrote."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.commands import (
    AspectOption,
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    number,
    tell,
    text_file,
)
from core.errors import UsageError
from core.records import Unscored, Verdict

if TYPE_CHECKING:
    from core.fusion.stack import Fusion, StackSettings
    from core.jobs.tasks.fusion_parts import Bench, Gathered
    from core.providers.base import ReplyStore
    from core.settings import Settings

fusing = typer.Typer(add_completion=False)
WITH = (
    "Names, parted by commas: offline, repeval, overlap, rouge1_source_p, rouge, chrf, similarity, metric_<name>, "
    "judge:FILE, replies:FILE, nli:MODEL, …"
)


@fusing.command()
def fuse(
    golden: Golden,
    *,
    aspect: AspectOption,
    with_: Annotated[str, typer.Option("--with", help=WITH)],
    out: Annotated[Path, typer.Option(help="Folder for fused.yaml, verdicts.jsonl and summary.json.")],
    method: Annotated[
        Literal["average", "ridge", "nnls", "llm"], typer.Option(help="llm: a model rates by a plan; needs --judge.")
    ] = "ridge",
    judge: Annotated[str, typer.Option(help="For llm: openai:MODEL[@BASE_URL], scripted[:SEED].")] = "",
    plan: Annotated[
        str, typer.Option(help="For llm: a plan's file, or 'model' to let it write one; else measured.")
    ] = "",
    also: Annotated[
        list[str] | None, typer.Option(help="For llm: another aspect to rate in the same calls; may be repeated.")
    ] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    split: Annotated[Literal["sources", "sources+systems"], typer.Option()] = "sources",
    share: Annotated[float, typer.Option("--calibration-share", help="Share of the sources to fit on.")] = 0.5,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Fuse several judges and metrics; report the fusion beside its parts on held-out items."""
    from core.calibration.settings import CalibrationSettings
    from core.comparison import usual_level
    from core.data import load_golden
    from core.fusion.stack import StackSettings
    from core.fusion.stack import fuse as join
    from core.jobs.tasks.fusion_parts import bench_of, gather, sides_of
    from core.settings import Settings

    if (method == "llm") != bool(judge):
        raise UsageError("--method llm needs --judge, and no other method takes one.")
    if also and method != "llm":
        raise UsageError("--also is for --method llm, which rates several aspects in one call.")
    loaded = load_golden(golden)
    settings = Settings.from_environment()
    found_level = chosen_level(level) or usual_level(loaded, aspect) if aspect in loaded.aspects else "dataset"
    chosen = CalibrationSettings(
        statistic=statistic, level=found_level, split=split, calibration_share=share, seed=seed
    )
    bench = bench_of(loaded, aspect, chosen, settings, _replies(judge, settings))
    names = [name.strip() for name in with_.split(",") if name.strip()]
    gathered = gather(bench, names, lambda name: typer.echo(f"{name} …", err=True))
    how = StackSettings(statistic=statistic, level=found_level, seed=seed, resamples=bootstrap)
    if method == "llm":
        tell(_by_model(bench, gathered, how, spec=judge, plan=plan, also=also or (), out=out), as_json, _words)
        return
    how = replace(how, method=method)
    fusion = join(loaded, aspect, gathered.parts, how, sides_of(bench, gathered))
    body = _body(fusion, gathered, aspect) | {"out": str(out)}
    _write(out, bench, fusion, gathered, body)
    tell(body, as_json, _words)


def _replies(spec: str, settings: Settings) -> ReplyStore | None:
    """The store as reply cache for a judge whose calls cost something; None for any other."""
    if not spec.startswith("openai:"):
        return None
    from core.jobs import tasks

    return tasks.open_store(settings).replies


def _by_model(
    bench: Bench, gathered: Gathered, how: StackSettings, *, spec: str, plan: str, also: Sequence[str], out: Path
) -> dict[str, Any]:
    from core.export import write_text
    from core.jobs.tasks.fusion_inline import MODEL_WRITES, fuse_by_model
    from core.jobs.tasks.fusion_parts import sides_of

    text = plan if plan in ("", MODEL_WRITES) else text_file(Path(plan), "--plan")
    sides = sides_of(bench, gathered)
    found = fuse_by_model(bench, gathered, sides, how, spec=spec, plan=text, also=also)
    verdicts = {bench.aspect: found.verdicts} | {name: one.verdicts for name, one in found.also.items()}
    if found.overall:
        verdicts["overall"] = found.overall
    body = {
        "aspect": bench.aspect,
        "method": "llm",
        "judge": spec,
        "fused": found.fused.as_json(),
        "parts": {name: one.as_json() for name, one in found.parts.items()},
        "left_out": dict(gathered.left_out),
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
        "unscored": {name: _unread(one) for name, one in verdicts.items()},
        "n_fit": len(sides.fit),
        "n_report": len(sides.report),
        "notes": list(found.notes),
        "out": str(out),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "plan.txt", found.plan.text + "\n")
    _write_verdicts(out, bench.aspect, verdicts)
    write_text(out / "summary.json", json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return body


def _write_verdicts(out: Path, aspect: str, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """verdicts.jsonl for the aspect itself, and a file of its own for each other and for all in all."""
    from core.export import verdict_lines, write_text

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


def _body(fusion: Fusion, gathered: Gathered, aspect: str) -> dict[str, Any]:
    body = {"aspect": aspect} | fusion.as_json()
    body["left_out"] = {**gathered.left_out, **body["left_out"]}
    return body


def _write(out: Path, bench: Bench, fusion: Fusion, gathered: Gathered, body: dict[str, Any]) -> None:
    from core.data.texts import KnownTexts
    from core.export import verdict_lines, write_text
    from core.export.fused_file import FusionCard, fused_yaml, task_entry
    from core.records import Scored

    golden = bench.golden
    card = FusionCard(
        bench.aspect,
        golden.name,
        golden.digest,
        KnownTexts.of(golden, bench.split.calibration, bench.split.held_out),
        fusion.state,
        list(gathered.recipes.values()),
        fusion.fused,
        {"parts": body["parts"], "left_out": body["left_out"], "n_fit": body["n_fit"], "notes": body["notes"]},
        task_entry(bench.aspect, golden.kind, golden.aspects[bench.aspect].scale),
    )
    unscored = {one.item_id: one for one in fusion.judge.unscored}
    verdicts = [
        unscored[item_id] if item_id in unscored else Scored(item_id, float(value))
        for item_id, value in zip(golden.item_ids, fusion.judge.values, strict=True)
    ]
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "fused.yaml", fused_yaml(card))
    write_text(out / "verdicts.jsonl", "".join(verdict_lines(verdicts)))
    write_text(out / "summary.json", json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def _words(body: dict[str, Any]) -> list[str]:
    from core.stats import p_figure

    def line(name: str, one: dict[str, Any], said: str = "") -> str:
        ends = f" [{one['interval'][0]:.3f}, {one['interval'][1]:.3f}]" if one["interval"] else ""
        unread = f", {one['n_unscored']} unscored" if one["n_unscored"] else ""
        return f"  {name:<28}{number(one['value'])}{ends}, n = {one['n']}{unread}{said}"

    fused, best, test = body["fused"], body["best_part"], body["against_best"]
    lines = [
        f"{body['aspect']}: {fused['statistic']}, {fused['level']} level, on held-out items; weights and choice on "
        f"{body['n_fit']} calibration items",
        line(f"fusion, {body['method']}", fused),
    ]
    for name, one in sorted(body["parts"].items(), key=lambda pair: -(pair[1]["value"] or -2)):
        lines.append(line(name, one, ", left out" if name in body["left_out"] else ""))
    if test is not None and test["value"] is not None:
        lines.append(f"fusion minus {best}, the best part on calibration: {test['value']:+.3f}, {p_figure(test['p'])}")
    lines += [line(f"{one}, in the same calls", told) for one, told in body.get("also", {}).items()]
    if "requests" in body:
        price = "" if body["cost"] is None else f", ${body['cost']:,.2f}"
        asked = f"{body['calls']:,} calls: {body['requests']:,} sent, {body['cached']:,} from the cache"
        lines.append(f"{asked}; {body['tokens']:,} tokens{price}")
    lines += [f"without {one}: {number(told['value'])}" for one, told in body["without"].items()]
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    return [*lines, *(f"Note: {note}" for note in body["notes"]), f"Written to {body['out']}"]


def score_fused(golden: Path, judge_file: Path, out: Path, *, accept_edited: bool = False, as_json: bool) -> None:
    """`score` with a fused judge: verdicts into `out` with the judge's marks, and which parts were missing."""
    from core.data import load_items
    from core.export import write_text
    from core.export.fused_judge import LoadedFusion
    from core.public import load_judge
    from core.scoring.batch import form_of, header_of, written

    judge = load_judge(judge_file, accept_edited=accept_edited)
    assert isinstance(judge, LoadedFusion)
    items = load_items(golden)
    try:
        verdicts = judge.score(items.items, metrics=items.metrics)
    finally:
        judge.close()
    found = written(verdicts, judge.marks, form_of(out))
    write_text(out, header_of(form_of(out)) + found.text)
    body = {
        "n_items": len(items.items),
        "n_scored": found.n_scored,
        "n_unscored": found.n_items - found.n_scored,
        "used": [part.name for part in judge.fused.parts if part.name not in judge.missing],
        "missing": dict(judge.missing),
        "marks": list(judge.marks),
        "out": str(out),
    }
    tell(body, as_json, _words_of_scores)


def _words_of_scores(body: dict[str, Any]) -> list[str]:
    lines = [f"{body['n_scored']} of {body['n_items']} items scored, {body['n_unscored']} unscored: {body['out']}"]
    lines.append(f"computed: {', '.join(body['used'])}")
    lines += [f"missing: {name}: {reason}" for name, reason in body["missing"].items()]
    if body["missing"]:
        lines.append("Missing parts count as their mean; the alignment in the file was measured with all parts.")
    return lines
