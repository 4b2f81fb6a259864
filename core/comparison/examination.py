"""Find the items on which a judge makes larger errors (weak spots), and the judge's biases.

*Weak spots.* Items are divided into groups by the judge's score, by system, and by length. The excess error of a group
is its error minus the error of an equally good judge. A group is a weak spot if its excess error exceeds that of the
other groups of the same division. Alignment is not tested, because a narrower range of labels lowers it in any group.

*Biases.* A judge's preference for longer texts is a bias only if the labels don't explain the preference, since raters
may share it. `core.stats.judge_flaws` takes noise in scores and labels into account.

All tests of an examination are corrected together (Holm) at 2.5 %. The comparison with the regression
(`core.stats.alignment`) uses the other 2.5 %. So the chance of any false claim is at most 5 % if there is nothing to
find (`tests/core/comparison/test_false_claims.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.comparison.given_verdicts import JudgeFiles, labelled_verdicts
from core.data.judge_results import AnyVerdicts
from core.errors import AspectError
from core.judge_files.documents import read_card
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Interval,
    Item,
    ItemKind,
    JudgeScores,
    Measure,
    Scale,
    Statistic,
    is_unspaced,
    json_fields,
    text_length,
)
from core.stats import ALPHA, LabelledItems, RaterTable, align, claim, holm, rater_table
from core.stats.intervals import CONFIDENCE, HALF_ALPHA, LEAST_SOURCES, ROUNDING, TOO_FEW, t_quantile, two_sided
from core.stats.judge_flaws import (
    LEAST_EXCESS,
    beyond_labels,
    error_contrasts,
    errors_and_expected,
    part_alignments,
    value_ranges,
)
from core.stats.stream_means import stream_mean

Division = Literal["score", "system", "length"]
BiasKind = Literal["length", "position", "own family"]
MOST_SYSTEMS = 40
"""Largest number of systems examined, those with most items first: each one takes power from all."""
FAMILIES: dict[str, str] = {
    "GPT": r"gpt|openai|davinci|chatgpt|o[134](-|$)",
    "Claude": r"claude|anthropic",
    "Gemini": r"gemini|gemma|palm|bard",
    "Llama": r"llama|vicuna|alpaca",
    "Mistral": r"mi[sx]tral",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "T5": r"t5",
    "BART": r"bart",
}
"""Family of models → pattern for the start of a part of the model's name, in lower case."""


@dataclass(frozen=True)
class Part:
    """A group of items, for example those of one system, with the judge's alignment and errors on it.

    Attributes:
        division: What the items are divided by: the judge's score, system or length.
        alignment: The judge's alignment on the group.
        error: Mean |label − label expected from the judge's score|, in points of the scale.
        expected: The `error` of an equally good judge. The excess error is `error` minus `expected`.
        difference: Excess error of the group minus that of the other groups of its division; None if not tested.
        interval: Interval of `difference`, corrected for all tests of the examination.
        p: The p of `difference`, corrected for all tests of the examination.
    """

    division: Division
    name: str
    alignment: Alignment
    n_sources: int
    error: float | None = None
    expected: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None

    @property
    def worse(self) -> bool:
        """Whether the errors are significantly larger than in the other parts, by a margin large enough to report."""
        larger = claim(self.difference, self.interval, self.p, alpha=HALF_ALPHA) == "higher"
        least = LEAST_EXCESS * (self.expected or 0.0)
        return larger and self.interval is not None and self.interval.low > least

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"worse": self.worse}


@dataclass(frozen=True)
class Bias:
    """A bias of the judge: how much its scores differ from unbiased scores.

    - Kind "length": `difference` is the correlation of scores with length, minus the correlation expected without bias.
    - Kind "own family": `difference` says how much higher the texts of the model family `name` are scored than expected
      without bias, in standard deviations of the scores.
    - Kind "position", for pairs judged in both orders: `difference` is the share of preferences for the second text,
      minus one half. A tie counts half.

    Attributes:
        interval: 95 % interval of `difference`.
        p: The p of `difference`, corrected for all tests of the examination.
        judge: Correlation of the scores with length, or with membership in the family.
        people: The same correlation for the labels.
        expected: The same correlation for unbiased scores, as a range if the labels' reliability is unknown.
        least: A `difference` up to this size is too small to be called a bias.
        reason: Why `difference` or `p` is None.
        flips: Share of the pairs whose verdict changes with the order; for "position" only.
    """

    kind: BiasKind
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    judge: Alignment | None = None
    people: Alignment | None = None
    expected: tuple[float, float] | None = None
    least: float = 0.0
    name: str = ""
    n: int = 0
    reason: str = ""
    flips: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the bias is significant and large enough to report.

        A bias against the judge's own model family is not reported.
        """
        verdict = claim(self.difference, self.interval, self.p, alpha=HALF_ALPHA)
        if self.interval is None:
            return False
        if verdict == "higher":
            return self.interval.low > self.least
        return verdict == "lower" and self.interval.high < -self.least and self.kind != "own family"

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"shown": self.shown}


@dataclass(frozen=True)
class Examination:
    """Weak spots and biases of a judge, on items that the judge has not seen.

    Attributes:
        overall: The judge's alignment on all examined items.
        parts: Groups of items, with the judge's errors on each.
        n_tests: Number of tests; every p and interval of a group is corrected for all of them.
        left_out: Missing division (by score, system or length) → why it is missing.
    """

    name: str
    overall: Alignment
    n_sources: int
    parts: tuple[Part, ...]
    n_tests: int
    biases: tuple[Bias, ...] = ()
    left_out: dict[Division, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.overall.n

    @property
    def worst(self) -> tuple[Part, ...]:
        """Return the parts with significantly larger errors than the rest of their division, largest excess first."""
        return tuple(sorted((part for part in self.parts if part.worse), key=lambda part: -(part.difference or 0.0)))

    def as_json(self) -> dict[str, Any]:
        return {"judge": self.name} | json_fields(self, but=("name",))


@dataclass(frozen=True, eq=False)
class _Examined:
    """Labelled, unseen items that the judge scored; in `scores` (n,) more is better.

    `ratings` are the individual ratings of the items; None if each item has only one label.
    """

    kind: ItemKind
    items: tuple[Item, ...]
    labelled: LabelledItems
    scores: FloatArray
    ratings: RaterTable | None


def examine_judge(
    golden: GoldenSet, aspect: str, judge: JudgeScores, *, statistic: Statistic = "spearman", model: str = ""
) -> Examination:
    """Examine `judge` on the labelled items that it scored and has not seen.

    Systems of the same model family as `model` are tested for the "own family" bias. If `model` is "", the judge's name
    is used.
    """
    usable = ~np.isnan(golden.labels(aspect)) & ~np.isnan(judge.values)
    usable[list(judge.seen)] = False
    at, scale, measure = np.flatnonzero(usable), golden.aspects[aspect].scale, Measure(statistic, "dataset")
    labelled, items = LabelledItems.of(golden, aspect, at), tuple(golden.items[int(k)] for k in at)
    overall = align(judge.upward[at], labelled, measure)
    if not at.size:
        return Examination(judge.name, overall, 0, (), 0)
    try:
        ratings = rater_table(golden, aspect).at(at)
    except AspectError:
        ratings = None
    of = _Examined(golden.kind, items, labelled, judge.upward[at], ratings)
    given, turned = judge.values[at], None if judge.turned is None else judge.turned[at]
    parts, contrasts, left_out = _parts(of, given, measure)
    biases = [_length(of), _position(of, given, turned, scale), _own_family(of, model or judge.name)]
    # one correction for all tests
    p = holm([*(contrast[-1] for contrast in contrasts), *(np.nan if bias.p is None else bias.p for bias in biases)])
    n_tests = int((~np.isnan(p)).sum())
    for k, (contrast, own) in enumerate(zip(contrasts, p.tolist(), strict=False)):
        if not np.isnan(own):
            parts[k] = _tested(parts[k], contrast, own, n_tests, scale.high - scale.low)
    corrected = zip(biases, p[len(parts) :].tolist(), strict=True)
    biases = [bias if np.isnan(own) else replace(bias, p=own) for bias, own in corrected]
    n_sources = int(np.unique(labelled.sources).size)
    return Examination(judge.name, overall, n_sources, tuple(parts), n_tests, tuple(biases), left_out)


def examine(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Examination:
    """Examine `verdicts` on labelled items: errors by score, system and length, and biases.

    Args:
        judge_file: Names the model and the texts that the judge was calibrated on.
        all_items: Include items that were used to choose or fit the judge. Otherwise they are left out if `verdicts` or
            `judge_file` mark them.

    Raises:
        AspectError: The aspect is unknown.
        UsageError: No verdict belongs to a labelled item.
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    of_items = given.verdicts.of_items(golden.item_ids)
    judge = JudgeScores(
        "the judge",
        "imported",
        aspect,
        given.verdicts.aligned(golden.item_ids),
        seen=tuple(given.seen.tolist()),
        turned=of_items.turned,
        mapped=of_items.mapped,
    )
    model = ""
    if isinstance(judge_file, Path | str):
        card = read_card(judge_file, accept_edited=True)
        model = str((card.get("judge") or {}).get("spec", ""))
    found = examine_judge(golden, aspect, judge, statistic=statistic, model=model)
    return replace(found, overall=given.counted(found.overall))


# ── where it fails ───────────────────────────────────────────────────────────────────────────────────────────


def _parts(
    of: _Examined, given: FloatArray, measure: Measure
) -> tuple[list[Part], list[FloatArray], dict[Division, str]]:
    """Divide the items in every way: return parts, `error_contrasts`, and reasons for missing divisions."""
    lengths, unit = text_lengths(of.items)
    divided: dict[Division, tuple[IntArray, list[str]] | str] = {
        "score": _by_number(given, ""),
        "system": _by_system(of.items),
        "length": _by_number(lengths, f" {unit}") if lengths.any() else "the texts are empty",
    }
    errors, sources = errors_and_expected(of.scores, of.labelled.labels), of.labelled.sources
    parts, contrasts, left_out = list[Part](), list[FloatArray](), dict[Division, str]()
    for division, found in divided.items():
        if isinstance(found, str) or len(found[1]) < 2:
            left_out[division] = found if isinstance(found, str) else "all items have the same value"
            continue
        codes, names = found
        untested = np.full((len(names), 4), np.nan)
        contrasts += list(untested if errors is None else error_contrasts(errors, sources, codes))
        for k, alignment in enumerate(part_alignments(of.scores, of.labelled, codes, measure)):
            inside = codes == k
            means = [None, None] if errors is None else [float(side[inside].mean()) for side in errors]
            n_sources = int(np.unique(sources[inside]).size)
            parts.append(Part(division, names[k], replace(alignment, n_unscored=0), n_sources, *means))
    return parts, contrasts, left_out


def _tested(part: Part, contrast: FloatArray, p: float, n_tests: int, width: float) -> Part:
    value, error, freedom, p_alone = contrast.tolist()
    # The widened interval excludes 0 exactly if the corrected p is at most `HALF_ALPHA`.
    n_intervals = ALPHA / HALF_ALPHA * (n_tests if p_alone <= 0.0 else max(p / p_alone, 1.0))
    reach = t_quantile(int(freedom), n_intervals) * error
    method = (
        f"jackknife over {part.n_sources:,} sources, t({freedom:.0f}), corrected for {n_tests} tests, like the p value"
    )
    interval = Interval(value - reach, value + reach, 1.0 - HALF_ALPHA, method, part.n_sources)
    return replace(part, difference=value, interval=interval.within(-width, width), p=p)


def _by_number(values: FloatArray, unit: str) -> tuple[IntArray, list[str]]:
    """Divide `values` (n,) into ranges: return a code for each, −1 for none, and the names of the ranges."""
    codes, names = value_ranges(values), []
    for k in range(int(codes.max(initial=-1)) + 1):
        low, high = (f"{end:.3g}" for end in (values[codes == k].min(), values[codes == k].max()))
        names.append(f"{low}{unit}" if low == high else f"{low} to {high}{unit}")
    return codes, names


def _by_system(items: tuple[Item, ...]) -> tuple[IntArray, list[str]] | str:
    counts = Counter(item.system_id for item in items if item.system_id)
    if len(counts) < 2:
        return "the items name only one system" if counts else "the items don't name the systems that wrote them"
    names = sorted(name for name, _ in counts.most_common(MOST_SYSTEMS))
    places = {name: k for k, name in enumerate(names)}
    return np.array([places.get(item.system_id, -1) for item in items], dtype=np.intp), names


def text_lengths(items: tuple[Item, ...]) -> tuple[FloatArray, str]:
    """Return the length of each judged text (n,) and the unit: words, or characters for scripts without spaces."""
    lengths = np.array([text_length(item.target) for item in items], dtype=np.float64)
    unspaced = sum(is_unspaced(item.target) for item in items)
    return lengths, "characters" if 2 * unspaced > len(items) else "words"


def pair_lengths(items: tuple[Item, ...]) -> FloatArray:
    """Return the length of each pair's second text minus that of the first, (n,)."""
    return np.array([text_length(item.context) - text_length(item.target) for item in items], dtype=np.float64)


# ── biases, their tests not yet corrected ────────────────────────────────────────────────────────────────────


def _length(of: _Examined) -> Bias:
    lengths, unit = text_lengths(of.items)
    if of.kind == "pair":  # a high score prefers the second text, so measure how much longer it is
        lengths = pair_lengths(of.items)
    if np.unique(lengths).size < 2:
        return Bias("length", name=unit, n=lengths.size, reason="all texts have the same length")
    return _leaning(of, "length", lengths, unit)


def _leaning(of: _Examined, kind: BiasKind, x: FloatArray, name: str, *, n_behind: int | None = None) -> Bias:
    """Estimate the correlation of scores with `x` (n,) beyond the labels or ratings; NaN leaves an item out."""
    kept = np.flatnonzero(~np.isnan(x))
    ratings = None if of.ratings is None else of.ratings.at(kept).values
    labels, sources = of.labelled.labels[kept], of.labelled.sources[kept]
    found = beyond_labels(of.scores[kept], x[kept], labels, sources, ratings=ratings, n_behind=n_behind)
    if found is None or np.isnan(found.value):
        nothing = "all scores or all labels are equal" if found is None else found.reason
        return Bias(kind, name=name, n=kept.size, reason=nothing)
    unit = float(x[kept].std()) if kind == "own family" else 1.0
    ends = found.interval
    return Bias(
        kind,
        found.value / unit,
        ends and replace(ends, low=ends.low / unit, high=ends.high / unit),
        found.p,
        Alignment("spearman", "dataset", found.judge, found.n, interval=found.judge_interval),
        Alignment("spearman", "dataset", found.labels, found.n, interval=found.labels_interval),
        found.expected,
        LEAST_EXCESS / unit,
        name,
        found.n,
        found.reason,
    )


def _position(of: _Examined, given: FloatArray, turned: FloatArray | None, scale: Scale) -> Bias:
    """Estimate how much more often the judge prefers the second text than the first, from pairs asked in both orders.

    The verdict `given` is the mean of both orders; `turned` are the scores of the other order, NaN if unknown.
    """
    if of.kind != "pair":
        return Bias("position", reason="there are no pairs")
    if turned is None or np.isnan(turned).all():
        return Bias("position", reason="no pair was judged in both orders")

    def preferred(scores: FloatArray) -> FloatArray:
        """Return −1 if the first text is better, 1 if the second is, 0 for a tie."""
        return np.asarray(np.sign(np.round(scores - (scale.low + scale.high) / 2.0, 9)), dtype=np.float64)

    both = ~np.isnan(turned)
    one, other = preferred(2.0 * given[both] - turned[both]), preferred(turned[both])
    value, ends, p = _excess((one - other) / 4.0, of.labelled.sources[both])
    flips, n = float((one != other).mean()), int(both.sum())
    return Bias("position", value, ends, p, n=n, reason=TOO_FEW if p is None else "", flips=flips)


def _excess(values: FloatArray, sources: IntArray) -> tuple[float, Interval | None, float | None]:
    """Return the mean of `values` (n,) from −½ to ½, its interval by source, and its p against 0.

    If all values are at one end, interval and p follow from the number of sources.
    """
    n_sources, value = int(np.unique(sources).size), float(values.mean())
    if n_sources >= LEAST_SOURCES and abs(value) == 0.5:
        reach, p = 1.0 - ((1.0 - CONFIDENCE) / 2.0) ** (1.0 / n_sources), 2.0 * 0.5**n_sources
        method = f"exact test, same result in all {n_sources:,} sources"
    else:
        mean = stream_mean(values, sources)
        if mean is None or n_sources < LEAST_SOURCES or mean.error is None or mean.error <= ROUNDING:
            return value, None, None
        reach, method = t_quantile(n_sources - 1) * mean.error, f"t({n_sources - 1}) over {n_sources:,} sources"
        p = two_sided(mean.value / mean.error, n_sources - 1)
    return value, Interval(max(value - reach, -0.5), min(value + reach, 0.5), CONFIDENCE, method, n_sources), p


def family_of(name: str) -> str:
    """Return the model family that `name` contains; "" if unknown."""
    parts = re.split(r"[^a-z0-9.-]+|(?<=[a-z])-(?=[a-z])", name.lower())
    return next((family for family, known in FAMILIES.items() if any(re.match(known, part) for part in parts)), "")


def _own_family(of: _Examined, model: str) -> Bias:
    family = family_of(model)
    if of.kind == "pair":
        return Bias("own family", reason="each pair contains texts from two systems")
    if not family:
        return Bias("own family", reason="the judge's model family is unknown")
    named = np.array([bool(item.system_id) for item in of.items], dtype=np.bool_)
    own = np.array([family_of(item.system_id) == family for item in of.items], dtype=np.bool_)
    others, n_own = named & ~own, int(own.sum())
    if n_own < 2 or others.sum() < 2:
        why = (
            f"too few texts: {n_own:,} from systems of the judge's model family ({family}) and {others.sum():,} from "
            "other systems"
        )
        return Bias("own family", name=family, reason=why)
    behind = min(np.unique(of.labelled.sources[own]).size, np.unique(of.labelled.sources[others]).size)
    return _leaning(of, "own family", np.where(named, own, np.nan), family, n_behind=behind)
