"""Commands that measure a judge: agreement, raters, systems, weak spots, decisions, and labels to collect."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import (
    VERDICTS,
    AspectOption,
    ForceFlag,
    GoldenFile,
    JudgeFileOptions,
    SeenOptions,
    VerdictsFile,
    command,
    read_scale,
    read_table,
)
from core.cli.output import (
    alignment_words,
    because,
    facts,
    finding_lines,
    noted,
    notes,
    seen_counts,
    seen_words,
    tell,
    tell_measured,
)
from core.errors import UsageError
from core.records import Statistic
from core.stats import MeasureSettings, claim
from core.wording import DASH, difference_figures, estimate, measure_name, number, p_figure

if TYPE_CHECKING:
    from core.stats import Comparison


@command("Measure")
def align(
    golden: GoldenFile,
    verdicts: VerdictsFile,
    *,
    aspect: AspectOption,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all statistics at all levels, with errors and kappa.")
    ] = False,
    measured: MeasureSettings,
    seen: SeenOptions,
) -> None:
    """Measure the agreement of verdicts with the raters."""
    from core.comparison.measures import align as measure
    from core.comparison.measures import align_all
    from core.findings.agreement import contradiction_words

    loaded = golden.load()
    table, unknown, off = read_table(loaded, verdicts, aspect)
    if everything:
        report = align_all(loaded, table, aspect, measured, **asdict(seen))
        body, alignment = report.as_json(), report.alignments[0]
        named = {name: body.get(name) for name in ("errors", "steps", "binary")}
        lines = [alignment_words(each) for each in report.alignments]
        lines += [facts(f"{name} ({report.words})", numbers) for name, numbers in named.items() if numbers]
        lines += notes(report.note)
    else:
        alignment = measure(loaded, table, aspect, measured, **asdict(seen))
        body = alignment.as_json()
        headline = f"Agreement with raters: {number(alignment.value)}."
        lines = [headline, alignment_words(alignment), contradiction_words(alignment, "The judge")]
    lines += _unknown_words(unknown, len(table))
    tell_measured(body | {"n_unknown": unknown}, lines, off, [alignment])


@command("Measure")
def compare(
    golden: GoldenFile,
    verdicts_a: VerdictsFile,
    verdicts_b: VerdictsFile,
    *,
    aspect: AspectOption,
    measured: MeasureSettings,
    seen: SeenOptions,
) -> None:
    """Test whether one judge agrees with the raters better than another judge does."""
    from core.comparison.measures import compare as measure
    from core.findings.agreement import regression_words

    loaded = golden.load()
    a, _, off_a = read_table(loaded, verdicts_a, aspect)
    b, _, off_b = read_table(loaded, verdicts_b, aspect)
    comparison = measure(loaded, a, b, aspect, measured, **asdict(seen))
    off = [*(f"a: {words}" for words in off_a), *(f"b: {words}" for words in off_b)]
    sides = comparison.difference.a, comparison.difference.b
    bar, body = comparison.bar, comparison.as_json()
    bars = [regression_words(bar, judge) for judge in range(len(bar.minus))] if bar else []
    if bars:
        body["bar"]["words"] = bars
    tell_measured(body, _comparison_words(comparison, bars), off, sides)


@command("Measure")
def ceiling(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    measured: MeasureSettings,
    verdicts: Annotated[
        Path | None,
        typer.Option(help=f"Compare a judge with the raters, each measured against the other raters. {VERDICTS}"),
    ] = None,
    raters_are: Annotated[
        Literal["experts", "skilled", "crowd"],
        typer.Option(
            help="Type of raters. In the annotator test, the judge may be worse than a rater by at most 0.2 (experts), "
            "0.15 (skilled) or 0.1 (crowd)."
        ),
    ] = "skilled",
    seen: SeenOptions,
) -> None:
    """Measure how well raters agree with each other, and compare a judge with them."""
    from core.comparison.leaderboard import ceiling as measure
    from core.comparison.measures import annotator_test, compare_with_raters
    from core.findings.agreement import annotator_finding, rater_finding
    from core.stats import EPSILONS

    loaded = golden.load()
    people = measure(loaded, aspect, measured)
    whose = f" of the panel {people.panel}" if people.panel else ""
    alpha = f"{number(people.krippendorff_alpha)}, n = {people.alpha_n_items}{because(people.alpha_reason)}"
    body = people.as_json()
    lines = [
        f"{aspect}: {people.n_raters:,} raters{whose}, each compared with the mean of the others",
        f"leave one rater out: {alignment_words(people.leave_one_out)}",
        f"Krippendorff's alpha ({people.alpha_metric}): {alpha}",
    ]
    if verdicts is not None:
        table, unknown, off = read_table(loaded, verdicts, aspect)
        axis = people.leave_one_out
        on_axis = MeasureSettings(axis.statistic, axis.level)
        paired = compare_with_raters(loaded, table, aspect, on_axis, **asdict(seen))
        tested = annotator_test(loaded, table, aspect, EPSILONS[raters_are], **asdict(seen))
        body["judge"] = {
            "beside_people": paired.as_json(),
            "annotator_test": tested.as_json(),
            "n_unknown": unknown,
            **noted(off),
            **seen_counts(paired.judge),
        }
        lines = [
            *rater_finding(paired, measure_name(axis.statistic, axis.level)).lines,
            *annotator_finding(tested).lines,
            *seen_words(paired.judge),
            *lines,
            *_unknown_words(unknown, len(table)),
            *off,
        ]
    tell(body, lines)


@command("Measure", "estimate-means")
def estimate_means(
    golden: GoldenFile,
    verdicts: Annotated[
        Path,
        typer.Argument(
            help=f"{VERDICTS} The file can cover any number of items, and can have the columns system_id and source_id."
        ),
    ],
    *,
    aspect: AspectOption,
    seen: SeenOptions,
) -> None:
    """Estimate the mean of each system from many verdicts and few labels."""
    from core.comparison.corrected_means import estimate_means as estimated_means
    from core.findings.system_quality import difference_words, means_finding, notes_of_systems

    estimated = estimated_means(golden.load(), verdicts, aspect, **asdict(seen))
    optimistic = seen_words(estimated) if seen.all_items else []  # the finding already mentions items that are left out
    means = estimated.means
    rows = [
        f"  {system.name}: {estimate(system.corrected)}, {system.n_labelled} labels, {system.n_judged:,} verdicts"
        for system in means.systems
    ]
    rows += [f"  {note}" for note in notes_of_systems(means)]
    rows += [f"  {pair.a} − {pair.b}: {difference_words(pair)}" for pair in means.differences]
    lines = [*finding_lines(means_finding(means, aspect, estimated.left_out), rows), *optimistic]
    tell(estimated.as_json() | seen_counts(estimated), lines)


@command("Measure")
def examine(
    golden: GoldenFile,
    verdicts: VerdictsFile,
    *,
    aspect: AspectOption,
    statistic: Annotated[Statistic, typer.Option("--statistic", help="Agreement coefficient.")] = "spearman",
    controls: Annotated[
        int,
        typer.Option(
            min=0, help="Number of texts to spoil on purpose. The judge in --judge-file scores the spoiled texts."
        ),
    ] = 0,
    seen: SeenOptions,
) -> None:
    """Find where a judge fails, and which biases it has."""
    from core.comparison.controls import negative_controls
    from core.comparison.examination import examine as examined
    from core.comparison.given_verdicts import calibration_items
    from core.findings.weak_spots import bias_finding, controls_finding, examination_finding
    from core.judge_files.loaded import load_judge

    loaded = golden.load()
    table, _, off = read_table(loaded, verdicts, aspect)
    examination = examined(loaded, table, aspect, statistic=statistic, **asdict(seen))
    said = examination_finding(examination)
    claims = [*[said.headline] * bool(examination.worst), *said.cautions]
    lines = [said.headline, *said.cautions, said.detail, "To see every subgroup and bias, add --json."]
    body = examination.as_json() | {"headline": said.headline, "claims": claims}
    for bias, own in zip(examination.biases, body["biases"], strict=True):
        own["words"] = bias_finding(bias).headline if bias.shown else None
    if controls:
        if len(seen.judge_file) != 1:
            raise UsageError("To score the spoiled texts, add exactly one --judge-file.")
        behind = seen.judge_file[0]
        positions = calibration_items(loaded, (), behind).tolist()
        with closing(load_judge(behind, replies=JudgeFileOptions().replies(behind))) as judge:
            found = negative_controls(loaded, aspect, judge.score, positions, n=controls)
        said = controls_finding(found)
        lines += [said.headline, *said.cautions, said.detail]
        body["controls"] = [control.as_json() for control in found]
    tell_measured(body, lines, off, [examination.overall])


@command("Measure")
def threshold(
    golden: GoldenFile,
    verdicts: VerdictsFile,
    *,
    aspect: AspectOption,
    yes_from: Annotated[
        float | None, typer.Option(help="Lowest label that counts as yes. Required if any label isn't 0 or 1.")
    ] = None,
    miss_cost: Annotated[float, typer.Option(help="Cost of a miss: the judge says no, but the raters say yes.")] = 1.0,
    alarm_cost: Annotated[
        float, typer.Option(help="Cost of a false alarm: the judge says yes, but the raters say no.")
    ] = 1.0,
    seen: SeenOptions,
) -> None:
    """Find the lowest score that should count as yes, and measure how often the resulting yes or no is right."""
    from core.comparison.measures import choose_threshold
    from core.findings.agreement import yes_no_finding

    loaded = golden.load()
    table, _, off = read_table(loaded, verdicts, aspect)
    chosen = choose_threshold(
        loaded, table, aspect, yes_from=yes_from, miss_cost=miss_cost, alarm_cost=alarm_cost, **asdict(seen)
    )
    tell_measured(chosen.as_json(), finding_lines(yes_no_finding(chosen)), off, [chosen])


@command("Measure")
def preferences(
    golden: GoldenFile,
    verdicts: Annotated[Path | None, typer.Argument(help=f"Judge to compare with the raters. {VERDICTS}")] = None,
    *,
    aspect: Annotated[
        str, typer.Option("--aspect", help="Aspect to use, from the column human_<aspect>.")
    ] = "preference",
    seen: SeenOptions,
) -> None:
    """Rank systems by preferences between pairs of texts, from raters and from a judge."""
    from core.comparison.measures import preferences as preferred
    from core.findings.system_quality import preferences_finding, strength_lines

    loaded, table, off = golden.load(), None, list[str]()
    if verdicts is not None:
        table, _, off = read_table(loaded, verdicts, aspect)
    outcome = preferred(loaded, aspect, table, **asdict(seen))
    strengths = strength_lines("raters", outcome.by_people)
    if outcome.by_judge is not None:
        strengths += strength_lines("the judge", outcome.by_judge)
    lines = finding_lines(preferences_finding(outcome), strengths)
    tell_measured(outcome.as_json(), lines, off, [outcome])


@command("Measure", "plan-labels")
def plan_labels(
    items: Annotated[int, typer.Argument(min=1, help="Number of items to label.")],
    *,
    sources: Annotated[
        int | None,
        typer.Option(min=1, help="Number of sources that the items come from (default: one per item)."),
    ] = None,
    raters: Annotated[int, typer.Option(min=1, help="Number of raters per item.")] = 1,
) -> None:
    """Forecast how precisely an alignment can be measured with a given number of labels."""
    from core.findings.agreement import label_planning_words
    from core.stats.label_planning import plan_labels as planned

    plan = planned(items, sources, raters)
    words = label_planning_words(plan)
    tell(plan.as_json() | {"words": words}, [words])


@command("Methods", "read-ratings")
def read_ratings(
    replies: Annotated[
        Path,
        typer.Argument(
            help="JSONL (.gz), CSV, Parquet or XLSX file with the columns item_id and responses (a list, or one text "
            "per row)."
        ),
    ],
    *,
    scale: Annotated[str, typer.Option("--scale", help="Scale that the judge was given, as LO-HI.")],
    aspect: Annotated[
        str, typer.Option("--aspect", help="Name of the aspect, if replies state it before the rating.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="File to write. Each line is a JSON object for one item.")] = None,
    force: ForceFlag = False,
) -> None:
    """Read ratings from a judge's replies, and count the unreadable replies."""
    from core.data.judge_results import read_replies_file
    from core.files import require_new

    require_new([out] if out else [], force=force)
    body = read_replies_file(replies, read_scale(scale), out, aspect=aspect)
    reasons = ", ".join(f"{count} {reason}" for reason, count in body["reasons"].items())
    unread = f", {body['n_unread']} couldn't be read ({reasons})" if body["n_unread"] else ""
    tell(body, [f"Read {body['n_read']} of {body['n_replies']} replies on {body['n_items']} items{unread}"])


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _unknown_words(n_unknown: int, n_verdicts: int) -> list[str]:
    words = f"Left out: {n_unknown:,} of {n_verdicts:,} verdicts, because the golden set doesn't contain their items."
    return [words] if n_unknown else []


def _comparison_words(comparison: Comparison, bars: list[str]) -> list[str]:
    from core.findings.agreement import contradiction_words

    difference, test = comparison.difference, comparison.williams
    figures = difference_figures(difference.value, difference.interval, difference.p)
    williams = DASH if test.t is None else f"t({test.df}) = {number(test.t)}, {p_figure(test.p_two_sided)} two-sided"
    found = {
        "higher": "Judge a agrees with the raters better than judge b does.",
        "lower": "Judge b agrees with the raters better than judge a does.",
        "open": "Judges a and b don't differ significantly in agreement with the raters.",
        "untested": "Concord can't test whether judge a or judge b agrees better with the raters.",
        "undefined": "The difference between judges a and b in agreement with the raters is undefined.",
    }
    return [
        found[claim(difference.value, difference.interval, difference.p)],
        f"{comparison.n_common} labelled items scored by both judges",
        f"a: {alignment_words(difference.a)}",
        f"b: {alignment_words(difference.b)}",
        contradiction_words(difference.a, "Judge a"),
        contradiction_words(difference.b, "Judge b"),
        f"difference a − b: {figures}{because(difference.reason or difference.p_reason)}",
        f"Williams' test (Pearson, dataset level): {williams}{because(test.reason)}",
        *(f"{name}: {words}" for name, words in zip("ab", bars, strict=False)),
        *notes(f"{test.note}."),
    ]
