"""`monitor`: reads what came, scores what is new, scores the anchors again, and says what has moved.

Beside its page it keeps, in one folder of its own::

    verdicts.jsonl   the verdict on every text scored so far, by the hash of the text: no text is paid for twice
    anchors.jsonl    a line a look: when, and the score of every anchor
    monitor.json     the judge file that all of it is of

A killed call loses nothing that was read: the new texts are scored with a checkpoint (`core.scoring`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from core.api.loading import load_judge
from core.data import load_golden
from core.data.exports import Traffic, Written, item_line, read_traffic
from core.data.known_texts import calibration_digests
from core.data.split import text_digest
from core.errors import GoldenError, JobError, UsageError
from core.export.judge_reading import kept_columns, kind_of_file
from core.export.loaded import LoadedJudge
from core.export.sureness import ABSTAINED
from core.files import json_lines, replacing, write_json, write_text
from core.monitoring.anchors import AnchorLook, look_again
from core.monitoring.outcome import Monitored
from core.monitoring.periods import By, Stream, periods_of, watch
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.records import FloatArray, GoldenSet, Item, Scored, Task, content_digest
from core.scoring import ScoreRequest, score_file, score_fused
from core.scoring.item_file import file_digest

VERDICTS, ANCHORS, STATE = "verdicts.jsonl", "anchors.jsonl", "monitor.json"


@dataclass(frozen=True, slots=True)
class MonitorRequest:
    """What to look at: `traffic` files (exports or tables), with people's labels among them called `label`.

    `anchors` is a golden set that is scored anew at every look.  `alpha` is the accepted chance of any false alarm,
    ever: half of it for the anchors where there are any.  `judge` is another model than the file's, and `abstain_over`
    the error to come down to by leaving verdicts out.  `mapping` is role → column of the tables.
    """

    traffic: tuple[Path, ...]
    judge_file: Path
    out: Path
    by: By = "day"
    label: str = ""
    anchors: Path | None = None
    baseline: tuple[str, ...] = ()
    alpha: float = 0.05
    judge: str = ""
    accept_edited: bool = False
    abstain_over: float | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)


def look_at(request: MonitorRequest, *, replies: ReplyStore | None = None, progress: Progress = SILENT) -> Monitored:
    """One look at the traffic.  `replies` answers requests on texts; anchors are always asked anew.

    GoldenError for files that cannot be read, JobError where the folder is of another judge, UsageError as `watch`;
    JudgeError and ProviderError as the judge raises them: what was read until then is kept.
    """
    with closing(
        load_judge(request.judge_file, judge=request.judge or None, accept_edited=request.accept_edited)
    ) as judge:
        task, marks, spec, seen = judge.task, judge.marks, judge.spec, calibration_digests(judge.card)
        _claim(request)
        kept = kept_columns(judge.card)
        traffic = read_traffic(request.traffic, request.label or task.aspect, request.mapping, kept)
        periods_of(traffic.rows, request.by, baseline=request.baseline, alpha=request.alpha)  # before anything is paid
        labels = _labels(traffic, task, seen)
        n_known, verdicts = _verdicts(request, traffic, replies, progress)
        look = None
        if request.anchors is not None:
            golden = load_golden(request.anchors, kept=kept | dict(request.mapping))
            look = _look(request, judge, golden, task)
    lines = [verdicts.get(text_key(row.item), {}) for row in traffic.rows]
    scores = np.array([_on_scale(line) for line in lines], dtype=np.float64)
    unsure = None if request.abstain_over is None else np.array([line.get(ABSTAINED) is True for line in lines])
    alpha = request.alpha if request.anchors is None else request.alpha / 2
    watched = watch(
        Stream(traffic.rows, scores, labels, task.scale, unsure),
        request.by,
        baseline=request.baseline,
        alpha=alpha,
    )
    n_labelled = int((~np.isnan(labels)).sum())
    return Monitored(
        *(task.aspect, spec, request.by, task.scale, watched, look),
        n_new=len(verdicts) - n_known,
        n_known=n_known,
        n_labelled=n_labelled,
        tools=traffic.tools,
        left_out={**traffic.left_out, **_strays(traffic)},
        notes=marks,
    )


def text_key(item: Item) -> str:
    """What a text is known by: what it says, whoever wrote it."""
    texts = [item.source, item.context, item.target, list(item.references)]
    return content_digest("text", texts).partition(":")[2]


def _strays(traffic: Traffic) -> Mapping[str, int]:
    known = {row.item.item_id for row in traffic.rows}
    n = sum(item_id not in known for item_id in traffic.labels)
    return {"labels of texts that did not come": n} if n else {}


def _labels(traffic: Traffic, task: Task, seen: Collection[str]) -> FloatArray:
    """(n,) people's labels, NaN for none and for texts that the judge has `seen`.

    GoldenError for labels off the scale of the judge: they would be of something else.
    """
    labels = np.array([traffic.labels.get(row.item.item_id, np.nan) for row in traffic.rows], dtype=np.float64)
    labels[[k for k, row in enumerate(traffic.rows) if text_digest(row.item) in seen]] = np.nan
    off = labels[~np.isnan(labels) & ((labels < task.scale.low) | (labels > task.scale.high))]
    if off.size:
        raise GoldenError(
            f"{off.size:,} of {np.count_nonzero(~np.isnan(labels)):,} labels lie off the judge's scale of "
            f"{task.scale.low:g} to {task.scale.high:g}, the first at {off[0]:g}. Name the right labels with --label."
        )
    return labels


def _on_scale(line: Mapping[str, Any]) -> float:
    """The score on the human scale where the judge has a map to it."""
    score = line.get("score") if line.get("calibrated") is None else line["calibrated"]
    return np.nan if score is None else float(score)


# ── the folder ───────────────────────────────────────────────────────────────────────────────────────────────


def _claim(request: MonitorRequest) -> None:
    """Note which judge the folder is of; JobError where it is of another one."""
    own = {"judge": file_digest(request.judge_file), "model": request.judge, "abstain_over": request.abstain_over}
    state = request.out / STATE
    if not state.exists():
        try:
            write_json(state, own)
        except OSError as error:
            raise UsageError(f"{request.out}: cannot be written ({error.strerror}). Choose another --out.") from error
        return
    try:
        kept = json.loads(state.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise JobError(f"{state}: cannot be read ({error}). Give another --out.") from error
    if kept != own:
        raise JobError(
            f"{request.out} holds verdicts of another judge file, model or abstention, which cannot be laid beside "
            f"those of {request.judge_file.name}. Give another --out, or bring back what it was started with."
        )


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of the folder; JobError for what is none."""
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
    request: MonitorRequest, traffic: Traffic, replies: ReplyStore | None, progress: Progress
) -> tuple[int, dict[str, dict[str, Any]]]:
    """How many texts had a score before, and the lines of all, by their keys; what was unread is asked again."""
    keep = request.out / VERDICTS
    known = {line["item_id"]: line for line in _kept(keep) if line.get("score") is not None}
    fresh: dict[str, Written] = {}
    for row in traffic.rows:
        if (key := text_key(row.item)) not in known:
            fresh.setdefault(key, row)
    n_known = len(known)
    if fresh:
        known |= {line["item_id"]: line for line in _score(request, fresh, replies, progress)}
        with replacing(keep) as place:
            write_text(place, json_lines(known.values()))
        for left in request.out.glob("new-*"):
            left.unlink(missing_ok=True)
    return n_known, known


def _score(
    request: MonitorRequest, fresh: Mapping[str, Written], replies: ReplyStore | None, progress: Progress
) -> list[dict[str, Any]]:
    """Verdict lines on new texts, whose file is named by what is in it: the same call again goes on."""
    name = content_digest("texts", sorted(fresh)).partition(":")[2][:12]
    texts, out = request.out / f"new-{name}.jsonl", request.out / f"new-{name}.verdicts.jsonl"
    write_text(texts, "".join(item_line(row, key) for key, row in fresh.items()))
    score = ScoreRequest(
        *(texts, request.judge_file, out, request.judge, request.accept_edited),
        coverage=None if request.abstain_over is None else 0.9,
        abstain_over=request.abstain_over,
    )
    try:
        if kind_of_file(request.judge_file) == "fusion":
            score_fused(score, replies=replies)
        else:
            score_file(score, replies=replies, progress=progress)
    except GoldenError as error:  # of a file that nobody but this command knows
        raise GoldenError(error.message, file=", ".join(path.name for path in request.traffic)) from error
    return list(_kept(out))


# ── anchors ──────────────────────────────────────────────────────────────────────────────────────────────────


def _look(request: MonitorRequest, judge: LoadedJudge, golden: GoldenSet, task: Task) -> AnchorLook | None:
    """Score the anchors anew and say what that look tells beside the first one."""
    labels = golden.labels(task.aspect) if task.aspect in golden.aspects else np.full(len(golden.items), np.nan)
    places = {text_key(item): k for k, item in enumerate(golden.items)}
    now = _scores(judge, golden, list(places.values()))
    line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "scores": now}
    kept = list(_kept(request.out / ANCHORS))
    with replacing(request.out / ANCHORS) as place:
        write_text(place, json_lines([*kept, line]))
    looks = [{key: score for key, score in look["scores"].items() if key in places} for look in (*kept, line)]
    if not looks[0]:
        raise JobError(
            f"{request.anchors}: none of these texts was among the anchors of the first look in {request.out}."
        )
    known = {key: float(labels[k]) for key, k in places.items() if not np.isnan(labels[k])}
    sources = {key: golden.items[k].source_id or key for key, k in places.items()}
    return look_again(looks, known, sources, request.alpha / 2)


def _scores(judge: LoadedJudge, golden: GoldenSet, positions: Sequence[int]) -> dict[str, float]:
    metrics = {name: tuple(column[k] for k in positions) for name, column in golden.metrics.items()}
    verdicts = judge.score([golden.items[k] for k in positions], metrics=metrics)
    return {
        text_key(golden.items[k]): verdict.value if verdict.calibrated is None else verdict.calibrated
        for k, verdict in zip(positions, verdicts, strict=True)
        if isinstance(verdict, Scored)
    }
