"""The commands that measure: align, compare, ceiling, estimate-means, plan-labels, read-ratings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    VERDICTS,
    AspectOption,
    ForceFlag,
    GoldenFile,
    JsonFlag,
    MeasureOptions,
    ReadOptions,
    SeenOptions,
    read_scale,
    read_table,
    with_options,
)
from core.cli.output import (
    alignment_words,
    because,
    interval_words,
    noted,
    notes,
    number,
    probability,
    seen_counts,
    seen_words,
    signed,
    tell,
)
from core.errors import UsageError

if TYPE_CHECKING:
    from core.comparison.corrected_means import EstimatedMeans
    from core.stats import AgreementReport, Ceiling, Comparison
    from core.stats.labels_needed import LabelPlanning


commands = typer.Typer(add_completion=False)

_MOST_PAIRS = 10
"""Pairs of systems told to a person."""


@commands.command(rich_help_panel="Measure")
@with_options
def align(
    golden: GoldenFile,
    verdicts: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    everything: Annotated[
        bool, typer.Option("--all", help="Every statistic at every level, errors, kappa; one table.")
    ] = False,
    measured: MeasureOptions,
    seen: SeenOptions,
    as_json: JsonFlag = False,
) -> None:
    """Measure the agreement of verdicts with the raters."""
    from core.comparison.measures import align as measure
    from core.comparison.measures import align_all
    from core.findings.agreement import contradiction_words

    loaded = golden.load()
    table, unknown, off = read_table(loaded, verdicts, aspect, golden.values)
    body, lines = {"n_unknown": unknown} | noted(off), [*_unknown_words(unknown, len(table)), *off]
    how, judge_file, all_items = measured.settings, seen.judge_file, seen.all_items
    if everything:
        report = align_all(loaded, table, aspect, how, judge_file=judge_file, all_items=all_items)
        lines += seen_words(report.alignments[0])
        tell(report.as_json() | body | seen_counts(report.alignments[0]), [*_table_words(report), *lines], as_json)
        return
    alignment = measure(loaded, table, aspect, how, judge_file=judge_file, all_items=all_items)
    asked = list(filter(None, [contradiction_words(alignment, "The judge")]))
    lines += seen_words(alignment)
    tell(alignment.as_json() | body | seen_counts(alignment), [alignment_words(alignment), *asked, *lines], as_json)


@commands.command("read-ratings", rich_help_panel="Methods")
def read_ratings(
    replies: Annotated[
        Path, typer.Argument(help="JSONL (.gz), CSV, Parquet or XLSX: item_id and responses (a list, or a text a row).")
    ],
    *,
    scale: Annotated[str, typer.Option("--scale", help="LO-HI: the scale that the judge was offered.")],
    parser: Annotated[
        Literal["concord", "paper"], typer.Option(help="paper: that of A Closer Look, for its tables only.")
    ] = "concord",
    aspect: Annotated[str, typer.Option("--aspect", help="Its name may stand before a rating.")] = "",
    letters: Annotated[bool, typer.Option("--letters", help="The replies choose A, B, C … for numbers.")] = False,
    out: Annotated[Path | None, typer.Option(help="Ratings, one JSON object a line.")] = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Read the ratings out of a judge's replies, and count what is unreadable."""
    from core.files import require_new
    from core.judge_files import read_replies_file

    require_new([out] if out else [], force=force)
    body = read_replies_file(replies, read_scale(scale), parser, out, aspect=aspect, letters=letters)
    tell(body, _reading_words(body), as_json)


@commands.command(rich_help_panel="Measure")
@with_options
def compare(
    golden: GoldenFile,
    verdicts_a: Annotated[Path, typer.Argument(help=VERDICTS)],
    verdicts_b: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    measured: MeasureOptions,
    seen: SeenOptions,
    as_json: JsonFlag = False,
) -> None:
    """Test whether one judge agrees better with the raters than another."""
    from core.comparison.measures import compare as measure

    loaded = golden.load()
    a, _, off_a = read_table(loaded, verdicts_a, aspect, golden.values)
    b, _, off_b = read_table(loaded, verdicts_b, aspect, golden.values)
    comparison = measure(
        loaded,
        a,
        b,
        aspect,
        measured.settings,
        judge_file=seen.judge_file,
        all_items=seen.all_items,
    )
    off = [f"{name}: {words}" for name, said in (("a", off_a), ("b", off_b)) for words in said]
    sides = comparison.difference.a, comparison.difference.b
    lines = [*_comparison_words(comparison), *off, *seen_words(*sides)]
    body = comparison.as_json()
    if comparison.bar is not None:
        body["bar"]["words"] = _bar_words(comparison)
    tell(body | noted(off) | seen_counts(*sides), lines, as_json)


@dataclass(frozen=True)
class AnnotatorTestOptions:
    """How the annotator test is made."""

    raters_are: Annotated[
        Literal["experts", "skilled", "crowd"],
        typer.Option(
            help="What the judge may be worse by in the annotator test: 0.2 for experts, 0.15 for skilled raters, "
            "0.1 for a crowd."
        ),
    ] = "skilled"
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Annotator test: take mean and spread out of each rater first.")
    ] = False
    nominal: Annotated[bool, typer.Option("--nominal", help="Annotator test: labels are classes, no order.")] = False


@commands.command(rich_help_panel="Measure")
@with_options
def ceiling(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    measured: MeasureOptions,
    panel: Annotated[
        str | None, typer.Option(help="Raters of one panel (expert: expert1, …); else those behind the labels.")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option(help=f"A judge to compare with the raters, each against the other raters. {VERDICTS}")
    ] = None,
    test: AnnotatorTestOptions,
    seen: SeenOptions,
    as_json: JsonFlag = False,
) -> None:
    """Measure how well raters agree with each other, and compare a judge with them."""
    from core.comparison.leaderboard import ceiling as measure
    from core.comparison.measures import annotator_test, beside_people
    from core.findings.agreement import annotator_finding, rater_finding
    from core.stats import EPSILONS, AnnotatorTestSettings, MeasureSettings

    loaded = golden.load()
    people = measure(loaded, aspect, measured.settings, panel=panel)
    body, lines = people.as_json(), _ceiling_words(people)
    if verdicts is not None:
        table, unknown, off = read_table(loaded, verdicts, aspect, golden.values)
        axis, panel = people.leave_one_out.alignment, people.panel or None
        judge_file, all_items = seen.judge_file, seen.all_items
        on_axis = MeasureSettings(axis.statistic, axis.level)
        paired = beside_people(loaded, table, aspect, on_axis, panel=panel, judge_file=judge_file, all_items=all_items)
        usual, by_source, over_items = (
            annotator_test(
                loaded,
                table,
                aspect,
                AnnotatorTestSettings(EPSILONS[test.raters_are], test.nominal, clustered, test.standardise),
                panel=panel,
                judge_file=judge_file,
                all_items=all_items,
            )
            for clustered in (None, True, False)
        )
        body["judge"] = {
            "beside_people": paired.as_json(),
            "annotator_test": usual.as_json(),
            "annotator_test_by_source": by_source.as_json(),
            "annotator_test_over_items": over_items.as_json(),
            "n_unknown": unknown,
            **noted(off),
            **seen_counts(paired.judge),
        }
        lines += [
            *rater_finding(paired, f"{axis.statistic}, {axis.level} level").lines,
            *annotator_finding(usual).lines,
            *(annotator_finding(over_items).lines if usual.clustered else ()),
            *_unknown_words(unknown, len(table)),
            *off,
            *seen_words(paired.judge),
        ]
    tell(body, lines, as_json)


@commands.command("estimate-means", rich_help_panel="Measure")
@with_options
def estimate_means(
    golden: GoldenFile,
    verdicts: Annotated[Path, typer.Argument(help=f"{VERDICTS} On any number of items; system_id, source_id beside.")],
    *,
    aspect: AspectOption,
    items: Annotated[
        Path | None, typer.Option(help="Items that the verdicts are about, with system_id, where they do not say it.")
    ] = None,
    seen: SeenOptions,
    picked: Annotated[
        Path | None, typer.Option(help="Ids of items whose labels are no random draw (triage), one a line.")
    ] = None,
    plan: Annotated[int | None, typer.Option(help="Tell what so many labels a system would give.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Estimate the mean of each system from many verdicts and few labels."""
    from core.comparison.corrected_means import estimate_means as estimate
    from core.findings.system_quality import means_finding

    estimated = estimate(
        golden.load(),
        verdicts,
        aspect,
        items=items,
        judge_file=seen.judge_file,
        all_items=seen.all_items,
        picked=() if picked is None else _ids_in(picked),
        planned=plan,
    )
    optimistic = seen_words(estimated) if seen.all_items else []  # what is left out stands in the finding
    headline = {"finding": means_finding(estimated.means, aspect).headline}
    lines = [*_means_words(estimated), *optimistic]
    tell(estimated.as_json() | headline | seen_counts(estimated), lines, as_json)


def _ids_in(file: Path) -> list[str]:
    """One id a line.  UsageError for a file that is no such text."""
    try:
        return [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read as lines of item ids ({error}).") from error


@commands.command("plan-labels", rich_help_panel="Measure")
@with_options
def plan_labels(
    items: Annotated[int, typer.Argument(min=1, help="Items to label.")],
    *,
    sources: Annotated[int | None, typer.Option(min=1, help="Sources that they are of; by default one each.")] = None,
    raters: Annotated[int, typer.Option(min=1, help="People who label each item.")] = 1,
    pilot: Annotated[Path | None, typer.Option(help="A golden set of a few labelled items.")] = None,
    verdicts: Annotated[Path | None, typer.Option(help="A judge's verdicts on the pilot.")] = None,
    aspect: Annotated[str, typer.Option("--aspect", help="The human_<aspect> of the pilot.")] = "",
    read: ReadOptions,
    as_json: JsonFlag = False,
) -> None:
    """Plan how many labels to collect: what each number of them can show."""
    from core.comparison.measures import label_pilot
    from core.stats.labels_needed import interval_curve
    from core.stats.labels_needed import plan_labels as planned

    if len({pilot is None, verdicts is None, not aspect}) > 1:
        raise UsageError("A pilot takes --pilot GOLDEN, --verdicts FILE and --aspect NAME together.")
    known, off = None, list[str]()
    if pilot is not None and verdicts is not None:
        loaded = read.load_file(pilot)
        table, _, off = read_table(loaded, verdicts, aspect, read.values)
        known = label_pilot(loaded, table, aspect)
    plan = planned(items, sources or items, raters, pilot=known)
    curve = interval_curve(plan, pilot=known)
    body = plan.as_json() | {"words": plan.words, "curve": [point.as_json() for point in curve]}
    tell(body, [plan.words, *(f"  {_plan_words(point)}" for point in curve), *off], as_json)


def _plan_words(point: LabelPlanning) -> str:
    known = f"{point.n_items:,} items: {number(point.value)}{interval_words(point.interval)}"
    fall = number(point.fall)
    return f"{known}, smallest fall seen {fall}{because(point.enough[-1] if point.enough else '')}"


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _unknown_words(n_unknown: int, n_verdicts: int) -> list[str]:
    words = f"Left out: {n_unknown:,} of {n_verdicts:,} verdicts, for items that are not in the golden set"
    return [words] if n_unknown else []


def _table_words(table: AgreementReport) -> list[str]:
    lines = [alignment_words(alignment) for alignment in table.alignments]
    if errors := table.errors:
        error = f"mean absolute error {number(errors.mae)}, bias {signed(errors.bias)} points"
        lines.append(f"{error} ({table.words}), n = {errors.n}")
    if steps := table.steps:
        shares = f"exact agreement {number(steps.exact)}, at most one step apart {number(steps.adjacent)}"
        kappa = f"quadratic kappa {number(steps.quadratic_kappa)}"
        lines.append(f"{kappa}, {shares} ({table.words}), n = {steps.n}{because(steps.reason)}")
    if two := table.binary:
        rates = f"precision {number(two.precision)}, recall {number(two.recall)}, F1 {number(two.f1)}"
        lines.append(f"{rates}, kappa {number(two.kappa)} ({table.words}), n = {two.n}{because(two.reason)}")
    return lines + (notes(table.note) if table.note else [])


def _comparison_words(comparison: Comparison) -> list[str]:
    from core.findings.agreement import contradiction_words

    difference, test = comparison.difference, comparison.williams
    reason = because(difference.reason or difference.p_reason)
    figures = f"{signed(difference.value, difference.interval)}, {probability(difference.p)}{reason}"
    williams = f"—{because(test.reason)}"
    if test.t is not None:
        p = f"{probability(test.p_two_sided)} two-sided, {probability(test.p_one_sided)} one-sided (a better)"
        williams = f"t({test.df}) = {number(test.t)}, {p}{because(test.reason)}"
    return [
        f"{comparison.n_common} common items with a label",
        f"a: {alignment_words(difference.a)}",
        f"b: {alignment_words(difference.b)}",
        *filter(None, [contradiction_words(difference.a, "Judge a"), contradiction_words(difference.b, "Judge b")]),
        f"difference a − b: {figures}",
        f"Williams' test (Pearson, dataset level): {williams}",
        *(f"{name}: {words}" for name, words in zip("ab", _bar_words(comparison), strict=False)),
        *notes(f"{test.note}."),
    ]


def _bar_words(comparison: Comparison) -> list[str]:
    from core.findings.agreement import bar_words

    bar = comparison.bar
    return [] if bar is None else [bar_words(bar, judge) for judge in range(len(bar.minus))]


def _means_words(estimated: EstimatedMeans) -> list[str]:
    from core.findings.system_quality import difference_words, means_finding, notes_of_systems
    from core.wording import estimate as shown

    means = estimated.means
    said = means_finding(means, estimated.aspect, estimated.left_out)
    lines = [said.headline, said.detail]
    for system in means.systems:
        sides = (system.corrected, system.labels_only, system.judge_only)
        corrected, labels, judge = map(shown, sides)
        counts = f"{system.n_labelled} labels, {system.n_judged:,} verdicts"
        worth = "" if system.n_effective is None else f", worth {system.n_effective:.0f} labels"
        lines.append(f"  {system.name}: {corrected}; labels alone {labels}, judge alone {judge}; {counts}{worth}")
    lines += [f"  {note}" for note in notes_of_systems(means)]
    lines += [f"  {pair.a} − {pair.b}: {difference_words(pair)}" for pair in means.differences[:_MOST_PAIRS]]
    if (more := len(means.differences) - _MOST_PAIRS) > 0:
        lines.append(f"  and {more} more pairs (--json has all)")
    if plan := estimated.plan:
        lines.append(f"{plan.n_labels} labels per system and {plan.n_unlabelled:,} verdicts would give:")
        lines += [f"  {worth.words}" for worth in plan.worth]
    if follow := estimated.next:
        lines.append(f"Label next, of {follow.system} ({follow.why}): {', '.join(follow.item_ids)}")
    return lines + notes(*said.cautions)


def _ceiling_words(people: Ceiling) -> list[str]:
    alpha, pairs, measured = people.alpha, people.pairwise, people.leave_one_out.alignment
    lonely = f", {measured.n_unscored} items with fewer than two ratings" if measured.n_unscored else ""
    whose = f" of the panel {people.panel}, whose" if people.panel else ", whose"
    n_compared = len(people.leave_one_out.by_rater)
    most = f"The {n_compared} raters with the most ratings are compared, each with the mean of all others."
    return [
        f"{people.aspect}: {people.n_raters:,} raters{whose} ratings are compared with the mean of the others'",
        *([most] if n_compared < people.n_raters else []),
        f"leave one rater out: {alignment_words(replace(measured, n_unscored=0))}{lonely}",
        f"Krippendorff's alpha ({alpha.metric}): {number(alpha.value)}, n = {alpha.n_items}{because(alpha.reason)}",
        f"mean pairwise Spearman: {number(pairs.value)}, {pairs.n_pairs} pairs{because(pairs.reason)}",
    ]


def _reading_words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in body["reasons"].items())
    unread = f", {body['n_unread']} unread ({reasons})" if body["n_unread"] else ""
    return [f"{body['n_read']} of {body['n_replies']} replies on {body['n_items']} items read{unread}"]
