"""Monitor a system in production: score newer texts, and test whether the texts or the judge have changed.

Texts are grouped into periods (days, weeks or versions), and later periods are compared with the first periods (the
baseline). However often you check, the chance of any false alarm is at most `ALPHA` (`core.stats.stream_means`).

Anchors are fixed texts that are scored again at every evaluation. If their scores change, the judge has changed, for
example because the endpoint serves another model.

The output folder contains::

    verdicts.jsonl   the verdict on every text scored so far, so that no text is paid for twice
    anchors.jsonl    one line per evaluation: its time, and the score of every anchor
    monitor.json     the judge that produced these verdicts
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from core.data.cells import CellError, folded, read_number
from core.data.columns import HUMAN, mapping_of, read_map
from core.data.golden import ITEM_ROLES, RowReader
from core.data.split import calibration_digests, text_digest
from core.data.tables import LIMITS, FindingLog, first_error, has_errors, open_table
from core.errors import GoldenError, JobError, UsageError
from core.files import file_digest, json_lines, replacing, write_json, write_text
from core.findings.over_time import monitor_finding
from core.progress import SILENT, Progress
from core.providers.completions import ReplyStore
from core.records import (
    FloatArray,
    GoldenSet,
    IntArray,
    Interval,
    Item,
    JsonRecord,
    Scale,
    Scored,
    content_digest,
    is_blank,
    json_fields,
)
from core.stats.intervals import CONFIDENCE, LEAST_SOURCES, ROUNDING, TOO_FEW, t_quantile
from core.stats.stream_means import LEAST_STREAM, StreamMean, share_of_level, stream_mean
from core.stats.system_means import JudgedItems, MeanEstimate, system_means
from core.wording import counted

if TYPE_CHECKING:
    from core.judge_files.loaded import LoadedJudge

VERDICTS, ANCHORS, STATE = "verdicts.jsonl", "anchors.jsonl", "monitor.json"

ALPHA = 0.05
"""Chance of any false alarm, ever; with anchors, half of it goes to them."""

TIMES = ("timestamp", "time", "start_time", "created_at", "request_time", "timestamp_ms", "date", "day", "at")
"""Usual columns for the time when a text was written, the likeliest first."""

_MILLISECONDS_FROM = 1e11
_HEAD = 500

By = Literal["day", "week", "version"]
UNKNOWN = "no version"
Who = Literal["nobody", "systems", "judge", "inconclusive", "too few texts"]


# ── periods ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Movement:
    """Change of the mean verdict from the baseline to a later period, on the human scale.

    Attributes:
        value: Mean verdict of the period minus mean verdict of the baseline; None if undefined.
        reach: Half the width of the interval around `value`; None if undefined.
    """

    value: float | None
    reach: float | None
    reason: str = ""

    @property
    def moved(self) -> bool:
        """Whether the interval excludes 0."""
        return self.value is not None and self.reach is not None and abs(self.value) > self.reach

    def as_json(self) -> dict[str, Any]:
        ends = None if self.value is None or self.reach is None else [self.value - self.reach, self.value + self.reach]
        return json_fields(self, but=("reach",)) | {"interval": ends, "moved": self.moved}


@dataclass(frozen=True)
class Period(JsonRecord):
    """Quality of the texts of one day, week or version.

    Attributes:
        n_unread: Number of texts without a verdict.
        judged: Mean of the verdicts, on the human scale.
        corrected: Mean quality estimated from verdicts and labels together. None if no period has labels.
        change: Change from the baseline; None for a period in the baseline.
    """

    name: str
    n: int
    n_unread: int
    n_labelled: int
    judged: StreamMean | None
    corrected: MeanEstimate | None
    in_baseline: bool
    change: Movement | None = None


def watch(
    items: Sequence[Item],
    times: Sequence[datetime | None],
    scores: FloatArray,
    labels: FloatArray,
    scale: Scale,
    *,
    by: By,
    alpha: float,
) -> tuple[Period, ...]:
    """Compare each later period with the baseline; return all periods in order.

    The baseline is the first periods that together have `LEAST_STREAM` sources.

    Args:
        times: Times in UTC at which the texts were written (n,); None if unknown.
        scores: Scores (n,) on the human `scale`; NaN for a text without a verdict.
        labels: Labels (n,) on the human `scale`; NaN for a text without a label.
        alpha: The chance of any false alarm, however often you check.

    Raises:
        UsageError: Periods are days or weeks, and a text has no time.
    """
    codes, names = periods_of(items, times, by)
    keys = [item.source_id or item.source or f"\0{item.item_id}" for item in items]
    sources = np.unique(keys, return_inverse=True)[1].astype(np.intp)
    read, labelled = ~np.isnan(scores), ~np.isnan(labels)
    enough = (k for k in range(len(names)) if np.unique(sources[(codes <= k) & read]).size >= LEAST_STREAM)
    last = next(enough, 0)  # of the baseline
    before, known = stream_mean(scores[read & (codes <= last)], sources[read & (codes <= last)]), None
    # alpha / 2 for the baseline, which no longer grows if periods have dates, and alpha / 4 for all later periods
    if before is not None:
        known = before.radius(alpha / 2, before.n_sources) if by == "version" else before.half_width(alpha / 2)
    corrected: list[MeanEstimate | None] = [None] * len(names)
    if labelled.any():  # a period takes the role of a system
        means = system_means(JudgedItems(labels, scores, sources, codes, tuple(names), scale))
        corrected = [system.corrected for system in means.systems]
    periods = []
    for k, name in enumerate(names):
        inside, change = codes == k, None
        mean = stream_mean(scores[inside & read], sources[inside & read])
        if k > last:
            change = _movement(before, mean, known, share_of_level(alpha / 4, k - last))
        n, n_unread, n_labelled = (int(these.sum()) for these in (inside, inside & ~read, inside & labelled))
        periods.append(Period(name, n, n_unread, n_labelled, mean, corrected[k], k <= last, change))
    return tuple(periods)


def periods_of(items: Sequence[Item], times: Sequence[datetime | None], by: By) -> tuple[IntArray, list[str]]:
    """Return the index of each text's period (n,), and the names of the periods in order.

    Raises UsageError if periods are days or weeks and a text has no time.
    """
    if by == "version":
        named = [item.system_id or UNKNOWN for item in items]
        order = sorted(range(len(items)), key=lambda k: 0.0 if (at := times[k]) is None else at.timestamp())
        names = list(dict.fromkeys(named[k] for k in order))
    else:
        if missing := times.count(None):
            raise UsageError(
                f"{missing:,} of {len(times):,} texts have no readable time, but --by {by} needs a time for each text. "
                "Map a column of times such as 2026-11-23T09:30:00 with --map time=COLUMN, or use --by version."
            )
        days = [at.date() for at in times if at is not None]
        named = [(day if by == "day" else day - timedelta(days=day.weekday())).isoformat() for day in days]
        names = sorted(set(named))
    places = {name: k for k, name in enumerate(names)}
    return np.array([places[name] for name in named], dtype=np.intp), names


def _movement(before: StreamMean | None, now: StreamMean | None, known: float | None, level: float) -> Movement:
    """Return the change from `before`, known within ±`known`, to `now`, at confidence 1 − `level`."""
    if before is None or now is None:
        return Movement(None, None, "no verdicts" if now is None else "the baseline has no verdicts")
    value, own = now.value - before.value, now.radius(level, before.n_sources)
    if known is None or own is None:
        few = counted(min(before.n_sources, now.n_sources), "source")
        return Movement(value, None, f"{few}; an alarm needs at least {LEAST_STREAM}")
    return Movement(value, known + own)


# ── anchors ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AnchorLook:
    """Change in the anchors' scores from the first evaluation to the `n`-th.

    Attributes:
        n_items: Number of anchors with a score in both evaluations.
        n_lost: Number of anchors with a score in the first evaluation only.
        change: Mean change in score on the human scale; None if undefined.
        interval: Interval of `change`. None at the first evaluation, if no score has changed, or with fewer than 8
            sources.
        reason: Why `interval` is None.
    """

    n: int
    n_items: int
    n_lost: int
    change: float | None
    interval: Interval | None
    reason: str = ""

    @property
    def moved(self) -> bool:
        """Whether the judge has changed significantly."""
        return self.interval is not None and not self.interval.low <= 0.0 <= self.interval.high

    @property
    def most(self) -> float | None:
        """The largest change in the judge's scores that the anchors do not rule out; None if unknown."""
        if self.interval is not None:
            return max(abs(self.interval.low), abs(self.interval.high))
        return 0.0 if self.n > 1 and self.change == 0.0 else None

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"moved": self.moved}


def compare_looks(looks: Sequence[Mapping[str, float]], sources: Mapping[str, str], alpha: float) -> AnchorLook:
    """Test whether the anchors' scores have changed from the first evaluation to the last.

    Args:
        looks: Scores of each evaluation, as anchor → score.
        alpha: Chance of a false alarm over all evaluations.
    """
    first, now, n = looks[0], looks[-1], len(looks)
    both = [anchor for anchor in first if anchor in now]
    look = AnchorLook(n, len(both), len(first) - len(both), None, None)
    if n == 1:
        return replace(look, reason="this first evaluation is the reference for later ones")
    if not both:
        return replace(look, reason="no anchor was scored again")
    changes = np.array([now[anchor] - first[anchor] for anchor in both])
    codes = np.unique([sources[anchor] for anchor in both], return_inverse=True)[1].astype(np.intp)
    if np.abs(changes).max() <= ROUNDING:
        return replace(look, change=0.0, reason="no score has changed")
    mean = stream_mean(changes, codes)
    assert mean is not None
    look = replace(look, change=mean.value)
    if mean.n_sources < LEAST_SOURCES or mean.error is None:
        return replace(look, reason=TOO_FEW)
    level, freedom = share_of_level(alpha, n - 1), mean.n_sources - 1
    half = t_quantile(freedom, (1.0 - CONFIDENCE) / level) * mean.error
    method = f"t({freedom}) over sources, corrected for repeated evaluations"
    return replace(look, interval=Interval(mean.value - half, mean.value + half, 1.0 - level, method, mean.n_sources))


# ── monitoring ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """Settings of `monitor`.

    Attributes:
        by: What a period is: "day", "week" or "version".
        anchors: Golden set whose items are scored again at every evaluation.
        mapping: Role → column of the texts. The role "time" is the time at which a text was written.
        judge: SPEC of a model to use instead of the model in the judge file; "" for no replacement.
        accept_edited: Accept a judge file that was changed after its export.
    """

    by: By = "day"
    anchors: Path | str | None = None
    mapping: Mapping[str, str] | str | Sequence[str] | None = None
    judge: str = ""
    accept_edited: bool = False


@dataclass(frozen=True)
class Monitored:
    """Result of `monitor`.

    Attributes:
        alpha: Chance of at least one false alarm, however many periods there are.
        look: Comparison of the anchors' scores with their first scores; None without anchors.
        n_new: Number of texts scored in this call.
        n_known: Number of texts scored in earlier calls.
        left_out: Number of skipped rows by reason.
    """

    aspect: str
    judge: str
    by: By
    scale: Scale
    periods: tuple[Period, ...]
    alpha: float
    look: AnchorLook | None
    n_new: int
    n_known: int
    n_labelled: int
    left_out: Mapping[str, int]
    notes: tuple[str, ...]

    @property
    def moved(self) -> tuple[Period, ...]:
        """Periods with a significant change."""
        return tuple(period for period in self.periods if period.change is not None and period.change.moved)

    @property
    def who(self) -> Who:
        """Return the cause of a significant change: "systems" or "judge", or "inconclusive" if it could be either.

        Without a significant change, return "nobody", or "too few texts" if there are not enough texts for a test.
        """
        if self.look is not None and self.look.moved:
            return "judge"
        changes = [period.change for period in self.periods if period.change is not None]
        if moves := [abs(change.value) for change in changes if change.moved and change.value is not None]:
            reach = None if self.look is None else self.look.most
            return "systems" if reach is not None and reach < min(moves) else "inconclusive"
        return "nobody" if any(change.reach is not None for change in changes) else "too few texts"

    @property
    def alarm(self) -> bool:
        """Whether there is a significant change, even if its cause is unknown."""
        return self.who in ("systems", "judge", "inconclusive")

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `monitor`."""
        said = monitor_finding(self)
        return json_fields(self, but=("scale", "look")) | {
            "scale": [self.scale.low, self.scale.high],
            "finding": said.headline,
            **json_fields(said, but=("headline",)),
            "moved": self.who,
            "alarm": self.alarm,
            "anchors": self.look and self.look.as_json(),
        }


def monitor(
    traffic: Path | str | Sequence[Path | str],
    judge_file: Path | str,
    out: Path | str,
    settings: MonitorSettings | None = None,
    *,
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Monitored:
    """Test whether quality has changed in production, and whether the systems or the judge changed.

    You may run `monitor` every day: the chance of any false alarm is at most 5 % in total. With the same `out`, no text
    is scored twice.

    Args:
        traffic: Tables of texts. Some texts can have raters' labels in the column ``human_<aspect>``.
        replies: Reply cache for the texts. Anchors are never read from a cache.

    Raises:
        GoldenError: A file cannot be read, or a label is outside the judge's scale.
        JobError: The folder belongs to another judge.
        UsageError: Periods are days or weeks, and a text has no time.
        JudgeError, ProviderError: The judge failed; verdicts read before the error are kept.
    """
    from core.data import load_golden
    from core.judge_files.documents import kept_columns
    from core.judge_files.loaded import load_judge

    how, file, folder = settings or MonitorSettings(), Path(judge_file), Path(out)
    paths = [Path(path) for path in ([traffic] if isinstance(traffic, str | Path) else traffic)]
    with closing(load_judge(file, judge=how.judge or None, accept_edited=how.accept_edited)) as judge:
        task, kept, given = judge.task, kept_columns(judge.card), read_map(how.mapping)
        _claim(folder, file, how.judge)
        items, times, labels, left_out = read_traffic(paths, task.aspect, given, kept)
        periods_of(items, times, how.by)  # before any paid request
        seen = calibration_digests(judge.card)
        labels[[k for k, item in enumerate(items) if text_digest(item) in seen]] = np.nan
        off = labels[~np.isnan(labels) & ((labels < task.scale.low) | (labels > task.scale.high))]
        if off.size:
            raise GoldenError(
                f"{off.size:,} labels are outside the judge's scale of {task.scale.low:g} to {task.scale.high:g}; the "
                f"first is {off[0]:g}. Map the correct column with --map {HUMAN}{task.aspect}=COLUMN."
            )
        n_known, verdicts = _verdicts(items, paths, file, folder, how, replies=replies, progress=progress)
        look = None
        if how.anchors is not None:
            mapping = {role: column for role, column in given.items() if role != "time"}
            look = _look(judge, load_golden(how.anchors, kept=kept | mapping), folder)
        marks, spec = judge.marks, judge.spec
    lines = [verdicts.get(text_key(item), {}) for item in items]
    scores = np.array([_on_scale(line.get("calibrated"), line.get("score")) for line in lines], dtype=np.float64)
    alpha = ALPHA if look is None else ALPHA / 2
    return Monitored(
        task.aspect,
        spec,
        how.by,
        task.scale,
        watch(items, times, scores, labels, task.scale, by=how.by, alpha=alpha),
        alpha,
        look,
        n_new=len(verdicts) - n_known,
        n_known=n_known,
        n_labelled=int((~np.isnan(labels)).sum()),
        left_out=left_out,
        notes=marks,
    )


def _on_scale(calibrated: float | None, score: float | None) -> float | None:
    """Return a score on the human scale if the judge has a map, otherwise the score itself."""
    return score if calibrated is None else calibrated


def text_key(item: Item) -> str:
    """Return a hash of an item's text that doesn't depend on the system that wrote it."""
    texts = [item.source, item.context, item.target, list(item.references)]
    return content_digest("text", texts).partition(":")[2]


# ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────


def read_traffic(
    paths: Sequence[Path], aspect: str, given: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[list[Item], list[datetime | None], FloatArray, dict[str, int]]:
    """Read all texts in order, with their times and labels.

    Args:
        given: Role → column, for columns that the user has named. A file can lack some of these columns.
        kept: Role → column, for columns to use if a file has them (see `load_golden`).

    Returns:
        Items, times (None if unknown), mean labels (NaN for none), and the number of skipped rows by reason.

    Raises:
        UsageError: None of the files has a column named in `given`.
        GoldenError: A file cannot be read, or none of the files contains a text.
    """
    read: dict[str, tuple[Item, datetime | None]] = {}
    labels: dict[str, list[float]] = defaultdict(list)
    left_out, all_columns = Counter[str](), dict[str, None]()
    kept = {role: column for role, column in kept.items() if role in ITEM_ROLES or role.startswith(HUMAN)}
    for path in paths:
        table = open_table(path, max_mb=None, max_rows=LIMITS.items, paths={*given.values(), *kept.values()})
        looked = table.rows()
        head = list(islice(looked, _HEAD))
        columns = looked.columns
        all_columns |= dict.fromkeys(columns)
        own = {role: column for role, column in given.items() if column in columns and role != "time"}
        mapping = mapping_of(columns, head, own, kept)
        if "target" not in mapping.roles or mapping.layout == "long":
            raise GoldenError(
                f"Can't find the column with the texts to judge. The columns are: {', '.join(columns)[:300]}. Choose "
                "one with --map target=COLUMN, or a field of an object with --map target=output.text.",
                file=path.name,
            )
        log = FindingLog()
        reader, names = RowReader(mapping, log), {folded(column): column for column in columns}
        time = given.get("time") or next((names[name] for name in TIMES if name in names), "")
        label = mapping.roles.get(HUMAN + aspect) or names.get(HUMAN + folded(aspect), "")
        for place, row in enumerate(cells := table.rows(), start=1):
            item = reader.read(place, cells.number, row)
            if is_blank(item.target):
                left_out["rows without text"] += 1
                continue
            if item.item_id in read:
                left_out["rows with a repeated id"] += 1
            else:
                read[item.item_id] = item, time_in(row.get(time))
            try:
                if label and (number := read_number(row.get(label))) is not None:
                    labels[item.item_id].append(number)
            except CellError:
                left_out["labels that aren't numbers"] += 1
        if has_errors(findings := log.sorted()):
            raise first_error(findings, path.name)
    if lacking := [column for column in given.values() if column not in all_columns]:
        raise UsageError(
            f"None of the files has a column {lacking[0][:60]!r}. The columns are: {', '.join(all_columns)[:400]}."
        )
    if not read:
        raise GoldenError(f"No texts to judge were found in {', '.join(path.name for path in paths)}.")
    items, times = map(list, zip(*read.values(), strict=True))
    means = np.array([fmean(labels[item.item_id]) if item.item_id in labels else np.nan for item in items])
    return items, times, means, dict(left_out)


def time_in(cell: Any) -> datetime | None:
    """Parse a time as UTC: ISO text, a date, or seconds or milliseconds since 1970; None for anything else."""
    try:
        if isinstance(cell, datetime):
            moment = cell
        elif isinstance(cell, int | float) and not isinstance(cell, bool):
            moment = datetime.fromtimestamp(cell / 1000 if cell > _MILLISECONDS_FROM else cell, UTC)
        else:
            moment = datetime.fromisoformat(str(cell).strip())
    except (OverflowError, OSError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


# ── the folder ───────────────────────────────────────────────────────────────────────────────────────────────


def _claim(folder: Path, judge_file: Path, model: str) -> None:
    """Record the judge of the folder; raises JobError if the folder belongs to another judge."""
    own, state = {"judge": file_digest(judge_file), "model": model}, folder / STATE
    try:
        if not state.exists():
            write_json(state, own)
        known = json.loads(state.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"Can't read or write {state} ({error}). Choose another folder with --out.") from error
    if known != own:
        raise JobError(
            f"{folder} contains verdicts from another judge file or model, which can't be compared with verdicts from "
            f"{judge_file.name}. Choose another folder with --out, or use the original judge."
        )


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of a file in the folder; raises JobError if the file is damaged."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                body = json.loads(line)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                raise JobError(
                    f"{path}: line {number} is damaged. Remove the line, or choose another folder with --out."
                )
            yield body


def _verdicts(
    items: Sequence[Item],
    paths: Sequence[Path],
    judge_file: Path,
    folder: Path,
    how: MonitorSettings,
    *,
    replies: ReplyStore | None,
    progress: Progress,
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Score the texts without a score; return how many had one before, and all verdicts by key.

    The file of new texts is named by its content, so repeating the call resumes it.
    """
    from core.scoring import ScoreRequest, score_file

    known = {line["item_id"]: line for line in _kept(folder / VERDICTS) if line.get("score") is not None}
    n_known = len(known)
    fresh = {key: item for item in items if (key := text_key(item)) not in known}
    if not fresh:
        return n_known, known
    name = content_digest("texts", sorted(fresh)).partition(":")[2][:12]
    texts, out = folder / f"new-{name}.jsonl", folder / f"new-{name}.verdicts.jsonl"
    parts = ("system_id", "source_id", "source", "context", "target", "references")
    lines = (
        {part: cell for part in parts if (cell := getattr(item, part))} | {"item_id": key}
        for key, item in fresh.items()
    )
    write_text(texts, json_lines(lines))
    request = ScoreRequest(texts, judge_file, out, how.judge, how.accept_edited)
    try:
        score_file(request, replies=replies, progress=progress)
    except GoldenError as error:  # an internal file of this command
        raise GoldenError(error.message, file=", ".join(path.name for path in paths)) from error
    known |= {line["item_id"]: line for line in _kept(out)}
    with replacing(folder / VERDICTS) as place:
        write_text(place, json_lines(known.values()))
    for left in folder.glob("new-*"):
        left.unlink(missing_ok=True)
    return n_known, known


def _look(judge: LoadedJudge, golden: GoldenSet, folder: Path) -> AnchorLook:
    """Score the anchors again, record the look, and compare it with the first."""
    places = {text_key(item): k for k, item in enumerate(golden.items)}
    positions = list(places.values())
    metrics = {name: tuple(column[k] for k in positions) for name, column in golden.metrics.items()}
    verdicts = judge.score([golden.items[k] for k in positions], metrics=metrics)
    now = {
        key: _on_scale(verdict.calibrated, verdict.value)
        for key, verdict in zip(places, verdicts, strict=True)
        if isinstance(verdict, Scored)
    }
    path = folder / ANCHORS
    lines = [*_kept(path), {"at": datetime.now(UTC).isoformat(timespec="seconds"), "scores": now}]
    with replacing(path) as place:
        write_text(place, json_lines(lines))
    looks = [{key: score for key, score in line["scores"].items() if key in places} for line in lines]
    if not looks[0]:
        raise JobError(
            f"None of these anchors was scored in the first evaluation in {folder}. "
            "Use the --anchors file of that evaluation."
        )
    sources = {key: golden.items[k].source_id or key for key, k in places.items()}
    return compare_looks(looks, sources, ALPHA / 2)
