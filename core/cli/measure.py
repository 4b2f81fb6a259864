"""The commands that measure: align, compare, ceiling, read-ratings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    VERDICTS,
    AspectOption,
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    read_scale,
)
from core.cli.words import in_words, number, probability, tell

if TYPE_CHECKING:
    from core.records import GoldenSet
    from core.stats import AgreementReport, Ceiling, Comparison
    from core.verdicts import Verdicts


commands = typer.Typer(add_completion=False)


@commands.command()
def align(
    golden: Golden,
    verdicts: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    everything: Annotated[
        bool, typer.Option("--all", help="Every statistic at every level, errors, kappa; one table.")
    ] = False,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Alignment of verdicts with people."""
    from core.api.measures import align as measure
    from core.api.measures import align_all, unknown_items
    from core.data import load_golden
    from core.data.task import task_of
    from core.export.verdicts import read_verdicts

    loaded = load_golden(golden)
    read = read_verdicts(verdicts, task_of(loaded, aspect).scale, aspect)
    body = {"n_unknown": unknown_items(loaded, read, aspect)}
    left_out = _words_of_unknown(body["n_unknown"], len(read))
    if everything:
        table = align_all(loaded, read, aspect, bootstrap=bootstrap, seed=seed)
        tell(table.as_json() | body, as_json, lambda _: [*_words_of_table(table), *left_out])
        return
    found = measure(
        loaded, read, aspect, statistic=statistic, level=chosen_level(level), bootstrap=bootstrap, seed=seed
    )
    tell(found.as_json() | body, as_json, lambda _: [in_words(found), *left_out])


@commands.command("read-ratings")
def read_ratings(
    replies: Annotated[Path, typer.Argument(help="JSONL (.gz): item_id and responses, a list of texts, a line.")],
    *,
    scale: Annotated[str, typer.Option("--scale", help="LO-HI: the scale that the judge was offered.")],
    parser: Annotated[
        Literal["concord", "paper"], typer.Option(help="paper: that of A Closer Look, for its tables only.")
    ] = "concord",
    aspect: Annotated[str, typer.Option("--aspect", help="Its name may stand before a rating.")] = "",
    letters: Annotated[bool, typer.Option("--letters", help="The replies choose A, B, C … for numbers.")] = False,
    out: Annotated[Path | None, typer.Option(help="Ratings, one JSON object a line.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Read the ratings out of a judge's replies; what cannot be read is counted with its reason."""
    from core.export import read_replies_file

    body = read_replies_file(replies, read_scale(scale), parser, out, aspect=aspect, letters=letters)
    tell(body, as_json, _words_of_readings)


@commands.command()
def compare(
    golden: Golden,
    verdicts_a: Annotated[Path, typer.Argument(help=VERDICTS)],
    verdicts_b: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Whether one judge aligns better with people than another, on their common items."""
    from core.api.measures import compare as measure
    from core.data import load_golden

    found = measure(
        load_golden(golden),
        verdicts_a,
        verdicts_b,
        aspect,
        statistic=statistic,
        level=chosen_level(level),
        bootstrap=bootstrap,
        seed=seed,
    )
    tell(found.as_json(), as_json, lambda _: _words_of_comparison(found))


@commands.command()
def ceiling(
    golden: Golden,
    *,
    aspect: AspectOption,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    panel: Annotated[
        str | None, typer.Option(help="Raters of one panel (expert: expert1, …); else those behind the labels.")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option(help=f"A judge to set beside the people, each against the other raters. {VERDICTS}")
    ] = None,
    raters_are: Annotated[
        Literal["experts", "skilled", "crowd"],
        typer.Option(help="What the judge may be worse by in the annotator test: .2 beside experts, .15, .1."),
    ] = "skilled",
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Annotator test: take mean and spread out of each rater first.")
    ] = False,
    nominal: Annotated[bool, typer.Option("--nominal", help="Annotator test: labels are classes, no order.")] = False,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """How well people agree with each other: the height a judge can be expected to reach; and a judge beside them."""
    from core.api.measures import ceiling as measure
    from core.data import load_golden
    from core.data.task import task_of
    from core.export.verdicts import read_verdicts

    loaded, at = load_golden(golden), chosen_level(level)
    found = measure(loaded, aspect, statistic=statistic, level=at, panel=panel, bootstrap=bootstrap, seed=seed)
    if verdicts is None:
        tell(found.as_json(), as_json, lambda _: _words_of_ceiling(found))
        return
    read = read_verdicts(verdicts, task_of(loaded, aspect).scale, aspect)
    judge = _beside(loaded, read, found, _Tested(raters_are, standardise=standardise, nominal=nominal))
    tell(found.as_json() | {"judge": judge.body}, as_json, lambda _: [*_words_of_ceiling(found), *judge.words])


@dataclass(frozen=True, slots=True)
class _Tested:
    """How the annotator test is made."""

    raters_are: str
    standardise: bool
    nominal: bool


@dataclass(frozen=True, slots=True)
class _Beside:
    """A judge beside the people, as JSON and in lines."""

    body: dict[str, Any]
    words: list[str]


def _beside(golden: GoldenSet, verdicts: Verdicts, found: Ceiling, chosen: _Tested) -> _Beside:
    """The paired difference at the ceiling's statistic and level, and both forms of the annotator test."""
    from core.api.measures import annotator_test, beside_people, unknown_items
    from core.stats import EPSILONS, annotator_test_words, beside_people_words

    axis, panel = found.leave_one_out.alignment, found.panel or None
    paired = beside_people(golden, verdicts, found.aspect, statistic=axis.statistic, level=axis.level, panel=panel)
    papers, ours = (
        annotator_test(
            golden,
            verdicts,
            found.aspect,
            epsilon=EPSILONS[chosen.raters_are],
            nominal=chosen.nominal,
            standardise=chosen.standardise,
            clustered=clustered,
            panel=panel,
        )
        for clustered in (False, True)
    )
    unknown = unknown_items(golden, verdicts, found.aspect)
    body = {
        "beside_people": paired.as_json(),
        "annotator_test": papers.as_json(),
        "annotator_test_by_source": ours.as_json(),
        "n_unknown": unknown,
    }
    return _Beside(
        body,
        [
            beside_people_words(paired, f"{axis.statistic}, {axis.level} level"),
            annotator_test_words(papers),
            annotator_test_words(ours),
            *_words_of_unknown(unknown, len(verdicts)),
        ],
    )


# ── words and JSON ───────────────────────────────────────────────────────────────────────────────────────────


def _words_of_unknown(n_unknown: int, n_rows: int) -> list[str]:
    """A note on verdicts whose items the golden set does not have; empty where there is none."""
    return [f"Left out: {n_unknown:,} of {n_rows:,} verdicts, for items that are not in the golden set"] * bool(
        n_unknown
    )


def _words_of_table(table: AgreementReport) -> list[str]:
    lines = [in_words(one) for one in table.alignments]
    if errors := table.errors:
        lines.append(f"mean absolute error {number(errors.mae)}, bias {number(errors.bias)} points, n = {errors.n}")
    if steps := table.steps:
        shares = f"exact agreement {number(steps.exact)}, at most one step apart {number(steps.adjacent)}"
        kappa = f"quadratic kappa {number(steps.quadratic_kappa)}"
        lines.append(f"{kappa}, {shares}, n = {steps.n}{_because(steps.reason)}")
    if two := table.binary:
        rates = f"precision {number(two.precision)}, recall {number(two.recall)}, F1 {number(two.f1)}"
        lines.append(f"{rates}, kappa {number(two.kappa)}, n = {two.n}{_because(two.reason)}")
    return [*lines, f"Note: {table.note}"] if table.note else lines


def _words_of_comparison(found: Comparison) -> list[str]:
    told, tested = found.difference, found.williams
    interval = f" [{told.interval.low:+.3f}, {told.interval.high:+.3f}]" if told.interval else ""
    value = "—" if told.value is None else f"{told.value:+.3f}"
    williams = f"—{_because(tested.reason)}"
    if tested.t is not None:
        p = f"{probability(tested.p_two_sided)} two-sided, {probability(tested.p_one_sided)} one-sided (a better)"
        williams = f"t({tested.df}) = {tested.t:.3f}, {p}{_because(tested.reason)}"
    return [
        f"{found.n_common} common items with a label",
        f"a: {in_words(told.a)}",
        f"b: {in_words(told.b)}",
        f"difference a - b: {value}{interval}, {probability(told.p)}{_because(told.reason or told.p_reason)}",
        f"Williams' test (Pearson, dataset level): {williams}",
        f"Note: {tested.note}.",
    ]


def _words_of_ceiling(found: Ceiling) -> list[str]:
    alpha, pairs, measured = found.alpha, found.pairwise, found.leave_one_out.alignment
    lonely = f", {measured.n_unscored} items with fewer than two ratings" if measured.n_unscored else ""
    whose = f" of the panel {found.panel}, whose" if found.panel else ", whose"
    return [
        f"{found.aspect}: {found.n_raters} raters{whose} ratings are compared with the mean of the others'",
        f"leave one rater out: {in_words(replace(measured, n_unscored=0))}{lonely}",
        f"Krippendorff's alpha ({alpha.metric}): {number(alpha.value)}, n = {alpha.n_items}{_because(alpha.reason)}",
        f"mean pairwise Spearman: {number(pairs.value)}, {pairs.n_pairs} pairs{_because(pairs.reason)}",
    ]


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _words_of_readings(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in body["reasons"].items())
    unread = f", {body['n_unread']} unread ({reasons})" if body["n_unread"] else ""
    return [f"{body['n_read']} of {body['n_replies']} replies on {body['n_items']} items read{unread}"]
