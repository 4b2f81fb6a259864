"""Monitor newer texts: read them, score the new ones, score the anchors again, report what moved.

Next to its page, the output folder keeps::

    verdicts.jsonl   the verdict on every text scored so far, by the hash of the text: no text is paid for twice
    anchors.jsonl    one line per look: when, and the score of every anchor
    monitor.json     the judge file that all of it belongs to

A killed call loses no verdict that was read: new texts are scored with a checkpoint (`core.scoring`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from core.comparison.periods import AnchorLook, By, Watched, look_again, periods_of, watch
from core.data.cells import CellError, folded, read_number
from core.data.columns import HUMAN, mapping_of, read_map
from core.data.golden import ITEM_ROLES, RowReader
from core.data.split import calibration_digests, text_digest
from core.data.tables import LIMITS, FindingLog, first_error, has_errors, open_table
from core.errors import GoldenError, JobError, UsageError
from core.files import json_lines, replacing, write_json, write_text
from core.findings.over_time import monitor_finding, movement_words
from core.progress import SILENT, Progress
from core.providers.completions import ReplyStore
from core.records import FloatArray, GoldenSet, Item, Scale, Scored, content_digest, json_fields
from core.report.figures.curves import periods_figure
from core.report.headline import bounded
from core.report.page import document
from core.texts import is_blank

if TYPE_CHECKING:
    from core.judge_files.loaded import LoadedJudge

VERDICTS, ANCHORS, STATE, PAGE = "verdicts.jsonl", "anchors.jsonl", "monitor.json", "monitor.html"

ALPHA = 0.05
"""Chance of any false alarm, ever; half of it goes to the anchors where there are any."""

TIMES = ("timestamp", "time", "start_time", "created_at", "request_time", "timestamp_ms", "date", "day", "at")
"""Columns that say when a text was written, the likeliest first."""

_MILLISECONDS_FROM = 1e11
_HEAD = 500

Who = Literal["nobody", "systems", "judge", "inconclusive", "too few texts"]


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """How to monitor.

    `by` names the periods.  `anchors` is a golden set that is scored anew at every look.  `mapping` is role → column of
    the texts, with the role ``time`` for when they were written.  `judge` scores with another model than the file's;
    `accept_edited` takes a judge file that was changed after its export.
    """

    by: By = "day"
    anchors: Path | str | None = None
    mapping: Mapping[str, str] | str | Sequence[str] | None = None
    judge: str = ""
    accept_edited: bool = False


@dataclass(frozen=True)
class Monitored:
    """The periods, the look at the anchors (None without anchors), and what was read.

    `left_out` maps what was not read → how many; `n_new` texts were scored now, `n_known` before.
    """

    aspect: str
    judge: str
    by: By
    scale: Scale
    watched: Watched
    look: AnchorLook | None
    n_new: int
    n_known: int
    n_labelled: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def who(self) -> Who:
        """Who has moved beyond chance."""
        if self.look is not None and self.look.moved:
            return "judge"
        changes = [period.change for period in self.watched.periods if period.change] + [self.watched.since]
        moves = [abs(change.value) for change in changes if change.moved and change.value is not None]
        if moves:
            reach = None if self.look is None else self.look.most
            return "systems" if reach is not None and reach < min(moves) else "inconclusive"
        return "nobody" if any(change.reach is not None for change in changes) else "too few texts"

    @property
    def alarm(self) -> bool:
        """Whether anything has moved."""
        return self.who in ("systems", "judge", "inconclusive")

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `monitor`."""
        return json_fields(self, but=("scale", "watched", "look")) | {
            "scale": [self.scale.low, self.scale.high],
            "finding": monitor_finding(self).headline,
            "moved": self.who,
            "alarm": self.alarm,
            "alpha": self.watched.alpha,
            "since_baseline": self.watched.since.as_json(),
            "periods": [period.as_json() for period in self.watched.periods],
            "anchors": None if self.look is None else self.look.as_json(),
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
    """Test whether quality moved in use, and whether the systems or the judge moved.

    Look as often as you like: the chance of any false alarm, ever, is 5 %.  `traffic` are tables of texts, some with
    raters' labels in the column ``human_<aspect>``; no text is scored twice with the same `out`, which gets
    `monitor.html`.  `replies` answers requests on texts; anchors are always asked anew.

    Raises:
        GoldenError: A file cannot be read, or its labels are off the judge's scale.
        JobError: The folder belongs to another judge.
        UsageError: Texts without times where periods are days or weeks.
        JudgeError, ProviderError: As the judge raises them; everything read until then is kept.
    """
    from core.data import load_golden
    from core.judge_files.judge_reading import kept_columns
    from core.judge_files.loaded import load_judge

    how, file, folder = settings or MonitorSettings(), Path(judge_file), Path(out)
    paths = [Path(path) for path in ([traffic] if isinstance(traffic, str | Path) else traffic)]
    with closing(load_judge(file, judge=how.judge or None, accept_edited=how.accept_edited)) as judge:
        task, kept, given = judge.task, kept_columns(judge.card), read_map(how.mapping)
        _claim(folder, file, how.judge)
        items, times, labels, left_out = read_traffic(paths, task.aspect, given, kept)
        periods_of(items, times, how.by)  # before anything is paid
        seen = calibration_digests(judge.card)
        labels[[k for k, item in enumerate(items) if text_digest(item) in seen]] = np.nan
        off = labels[~np.isnan(labels) & ((labels < task.scale.low) | (labels > task.scale.high))]
        if off.size:
            raise GoldenError(
                f"{off.size:,} labels lie off the judge's scale of {task.scale.low:g} to {task.scale.high:g}, the "
                f"first at {off[0]:g}. Name the right column with --map {HUMAN}{task.aspect}=COLUMN."
            )
        n_known, verdicts = _verdicts(items, paths, file, folder, how, replies=replies, progress=progress)
        look = None
        if how.anchors is not None:
            mapping = {role: column for role, column in given.items() if role != "time"}
            look = _look(judge, load_golden(how.anchors, kept=kept | mapping), folder)
        marks, spec = judge.marks, judge.spec
    lines = [verdicts.get(text_key(item), {}) for item in items]
    given_scores = [line.get("score") if line.get("calibrated") is None else line["calibrated"] for line in lines]
    scores = np.array(given_scores, dtype=np.float64)
    alpha = ALPHA if look is None else ALPHA / 2
    monitored = Monitored(
        task.aspect,
        spec,
        how.by,
        task.scale,
        watch(items, times, scores, labels, task.scale, by=how.by, alpha=alpha),
        look,
        n_new=len(verdicts) - n_known,
        n_known=n_known,
        n_labelled=int((~np.isnan(labels)).sum()),
        left_out=left_out,
        notes=marks,
    )
    write_text(folder / PAGE, monitor_page(monitored))
    return monitored


def text_key(item: Item) -> str:
    """The key of a text, whoever wrote it."""
    texts = [item.source, item.context, item.target, list(item.references)]
    return content_digest("text", texts).partition(":")[2]


# ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────


def read_traffic(
    paths: Sequence[Path], aspect: str, given: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[list[Item], list[datetime | None], FloatArray, dict[str, int]]:
    """The texts of all `paths` in their order, when each was written, its mean label (NaN for none), and what was left
    out → how many.

    `given`: role → column; each file has some of these columns.  `kept`: as `load_golden` takes it.  UsageError for a
    given column that is in no file.  GoldenError for a file that cannot be read, or where no file holds a text.
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
                f"No column holds the text to judge. There are: {', '.join(columns)[:300]}. Name it with --map "
                "target=COLUMN; --map target=output.text names a field within an object.",
                file=path.name,
            )
        log = FindingLog()
        reader, names = RowReader(mapping, log), {folded(column): column for column in columns}
        time = given.get("time") or next((names[name] for name in TIMES if name in names), "")
        label = mapping.roles.get(HUMAN + aspect) or names.get(HUMAN + folded(aspect), "")
        for place, row in enumerate(cells := table.rows(), start=1):
            item = reader.read(place, cells.number, row)
            if is_blank(item.target):
                left_out["rows without a text"] += 1
                continue
            if item.item_id in read:
                left_out["rows whose id came before"] += 1
            else:
                read[item.item_id] = item, time_in(row.get(time))
            try:
                if label and (number := read_number(row.get(label))) is not None:
                    labels[item.item_id].append(number)
            except CellError:
                left_out["labels that are no numbers"] += 1
        if has_errors(findings := log.sorted()):
            raise first_error(findings, path.name)
    if lacking := [column for column in given.values() if column not in all_columns]:
        raise UsageError(f"No file has a column {lacking[0][:60]!r}. There are: {', '.join(all_columns)[:400]}.")
    if not read:
        raise GoldenError(f"There is no text to judge in {', '.join(path.name for path in paths)}.")
    items, times = map(list, zip(*read.values(), strict=True))
    means = np.array([fmean(labels[item.item_id]) if item.item_id in labels else np.nan for item in items])
    return items, times, means, dict(left_out)


def time_in(cell: Any) -> datetime | None:
    """A moment in UTC: ISO text, seconds or milliseconds since 1970, a day; None for anything else."""
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
    """Note the judge of the folder; JobError where it belongs to another one."""
    from core.scoring.item_file import file_digest

    own = {"judge": file_digest(judge_file), "model": model}
    state = folder / STATE
    try:
        if not state.exists():
            write_json(state, own)
            return
        known = json.loads(state.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{state}: cannot be used ({error}). Give another --out.") from error
    if known != own:
        raise JobError(
            f"{folder} holds verdicts of another judge file or model, which cannot be compared with those of "
            f"{judge_file.name}. Give another --out, or the judge that it was started with."
        )


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of the folder; JobError for a damaged one."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                body = json.loads(line)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                raise JobError(f"{path}: line {number} is damaged. Take the line out, or give another --out.")
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
    """How many texts had a score before, and the lines of all, by their keys; what was unread is asked again.

    The file of the new texts is named by what is in it: the same call resumes it.
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
    except GoldenError as error:  # of a file that nobody but this command knows
        raise GoldenError(error.message, file=", ".join(path.name for path in paths)) from error
    known |= {line["item_id"]: line for line in _kept(out)}
    with replacing(folder / VERDICTS) as place:
        write_text(place, json_lines(known.values()))
    for left in folder.glob("new-*"):
        left.unlink(missing_ok=True)
    return n_known, known


def _look(judge: LoadedJudge, golden: GoldenSet, folder: Path) -> AnchorLook:
    """Score the anchors anew, note the look, and compare it with the first one."""
    places = {text_key(item): k for k, item in enumerate(golden.items)}
    positions = list(places.values())
    metrics = {name: tuple(column[k] for k in positions) for name, column in golden.metrics.items()}
    verdicts = judge.score([golden.items[k] for k in positions], metrics=metrics)
    now = {
        key: verdict.value if verdict.calibrated is None else verdict.calibrated
        for key, verdict in zip(places, verdicts, strict=True)
        if isinstance(verdict, Scored)
    }
    path = folder / ANCHORS
    lines = [*_kept(path), {"at": datetime.now(UTC).isoformat(timespec="seconds"), "scores": now}]
    with replacing(path) as place:
        write_text(place, json_lines(lines))
    looks = [{key: score for key, score in line["scores"].items() if key in places} for line in lines]
    if not looks[0]:
        raise JobError(f"None of the anchors was among those of the first look in {folder}. Give the same --anchors.")
    sources = {key: golden.items[k].source_id or key for key, k in places.items()}
    return look_again(looks, sources, ALPHA / 2)


# ── the page and the table ───────────────────────────────────────────────────────────────────────────────────


def monitor_page(monitored: Monitored) -> str:
    """One HTML document without script: the finding, the figure of all periods, the table and what was read."""
    aspect = bounded(monitored.aspect, 80)
    return document(
        "monitor.html",
        m=monitored,
        aspect=aspect,
        said=monitor_finding(monitored),
        plot=periods_figure(monitored.watched, aspect=aspect, scale=monitored.scale),
        made_at=datetime.now(UTC),
        movement=movement_words,
    )
