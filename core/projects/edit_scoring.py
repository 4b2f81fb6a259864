"""Criteria that somebody edits, scored by the judge of a run: on all calibration items next to their parent, or on one.

The trial on one item has a lane of its own in the worker, so that it waits for no long run; nothing of it is saved.
Reviewers start both: they send a text that somebody typed to an endpoint that may cost money.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from core.calibration.proposals import standardised_gap
from core.errors import CriteriaError, UsageError
from core.progress import Stage
from core.project_records import Side
from core.projects.calibration import calibration_asked, sides_of
from core.projects.criteria import LONGEST_TEXT
from core.projects.roles import requires
from core.projects.run_work import EDIT_SCORED, RunWork, judge_run, require_judge, start_run
from core.providers.completions import Message
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Interval, Measure, Provenance, Scored, Usage
from core.settings import Settings
from core.stats import Difference
from core.store.store import Store
from core.wording import judge_words

MOST_CHANGED = 200
"""Items that crossed the line and are kept of a re-scoring."""


# ── next to the parent, on the calibration items ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """Score edited criteria next to their parent, with the judge of `run_id` on that run's calibration items."""

    project_id: str
    golden_id: str
    aspect: str
    criteria_id: str
    parent_id: str
    run_id: str
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Alignment of the new criteria minus the parent's on the same items, paired over sources.

    `p` is two-sided; None (like `value`) where a side is undefined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int

    @classmethod
    def of(cls, difference: Difference) -> PairedDifference:
        return cls(difference.value, difference.interval, difference.p, difference.n)


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that crossed the line: `now` "mended" was misaligned under the parent, "broken" is misaligned now.

    Scores and label on the task's scale; gaps are standardised score minus standardised label.
    """

    item_id: str
    label: float
    parent_score: float
    new_score: float
    parent_gap: float
    new_gap: float
    now: Literal["mended", "broken"]


@dataclass(frozen=True, slots=True)
class RescoreResult:
    """What a re-scoring found.  `changed` is sorted by how far the gap moved, furthest first, at most `MOST_CHANGED`.

    The held-out alignments are None unless they were asked for.
    """

    criteria_id: str
    parent_id: str
    parent: Alignment
    new: Alignment
    difference: PairedDifference
    changed: tuple[ChangedItem, ...]
    parent_held_out: Alignment | None = None
    new_held_out: Alignment | None = None
    held_out_difference: PairedDifference | None = None
    usage: Usage = field(default_factory=Usage)


@requires("reviewer", "re-scored an edit")
def start_rescore(store: Store, settings: Settings, request: RescoreRequest) -> str:
    """Score the edited criteria and their parent with the judge of `request.run_id`, on that run's calibration items.

    A re-scoring or a round has the judge of the calibration it began from.  Held-out items are left alone unless
    `request.held_out`.  NotFoundError for unknown criteria or run; JobError when the run has no judge yet.
    """
    author = store.criteria.get(request.project_id, request.criteria_id).author
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{request.aspect} · edit{f' by {author}' if author else ''} · {judge_words(spec)}"
    opens = EDIT_SCORED if request.held_out else ""
    return start_run(store, settings, "rescore", request, title=title, judge_spec=spec, opens=opens)


def run_rescore(work: RunWork) -> RescoreResult:
    """Score both, compare them on calibration and, where asked for, on held-out; enter their alignments."""
    from core.stats import LabelledItems, paired_difference

    request, golden = work.request(RescoreRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split, chosen = of.task(golden), sides_of(work.store, request.run_id, golden), of.settings
    ids = (request.criteria_id, request.parent_id)
    pair = [work.store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in ids]
    labels = LabelledItems.of(golden, task.aspect, split.calibration)
    measure = Measure(chosen.statistic, chosen.level or labels.usual_level)
    sides: dict[Side, Sequence[int]] = {"calibration": split.calibration}
    if request.held_out:
        sides["held-out"] = split.held_out
    expected = 2 * sum(map(len, sides.values()))
    calls, usage = 0, Usage()
    changed: tuple[ChangedItem, ...] = ()
    differences: dict[Side, Difference] = {}
    with work.asking(require_judge(work.store, request.run_id), task) as judge:
        for side, positions in sides.items():
            phase = "revisit" if side == "calibration" else side
            work.progress.publish(Stage(phase, f"scoring {side} items", calls, expected, usage))
            scored = judge.score(pair, positions)
            calls, usage = calls + scored.calls, usage + scored.usage
            new, parent = (scored.values[scored.criteria_ids.index(criteria_id)] for criteria_id in ids)
            items = LabelledItems.of(golden, task.aspect, positions)
            differences[side] = paired_difference(
                new, parent, items, measure, resamples=chosen.resamples, seed=chosen.seed
            )
            if side == "calibration":
                changed = changed_items(golden, positions, items.labels, parent=parent, new=new, min_gap=chosen.min_gap)
        work.progress.publish(Stage("done", "done", expected, expected, usage))
    alignments = [work.alignment(ids[0], side, both.a) for side, both in differences.items()]
    work.add_alignments([*alignments, *(work.alignment(ids[1], side, both.b) for side, both in differences.items())])
    on_calibration, held_out = differences["calibration"], differences.get("held-out")
    return RescoreResult(
        *ids,
        parent=on_calibration.b,
        new=on_calibration.a,
        difference=PairedDifference.of(on_calibration),
        changed=changed[:MOST_CHANGED],
        parent_held_out=None if held_out is None else held_out.b,
        new_held_out=None if held_out is None else held_out.a,
        held_out_difference=None if held_out is None else PairedDifference.of(held_out),
        usage=usage,
    )


def changed_items(
    golden: GoldenSet,
    positions: Sequence[int],
    labels: FloatArray,
    *,
    parent: FloatArray,
    new: FloatArray,
    min_gap: float,
) -> tuple[ChangedItem, ...]:
    """Items that crossed |standardised gap| = `min_gap`; those whose gap moved most come first.

    `labels`, `parent` and `new` are (n,), of the items at `positions`; items that either left unscored are no part.
    """
    before, after = standardised_gap(parent, labels), standardised_gap(new, labels)
    was, now = np.abs(before) >= min_gap, np.abs(after) >= min_gap
    crossed = np.flatnonzero((was != now) & ~np.isnan(before) & ~np.isnan(after))
    moved = np.abs(np.abs(before[crossed]) - np.abs(after[crossed]))
    order = crossed[np.argsort(-moved, kind="stable")]
    numbers = np.column_stack([labels, parent, new, before, after])[order].tolist()
    changed = []
    for k, (label, old_score, new_score, old_gap, new_gap) in zip(order.tolist(), numbers, strict=True):
        item_id = golden.items[positions[k]].item_id
        changed.append(
            ChangedItem(item_id, label, old_score, new_score, old_gap, new_gap, "broken" if now[k] else "mended")
        )
    return tuple(changed)


# ── on one item ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Judge one item under `text` with the judge of `run_id`; `criteria_id` is what was on the screen, if anything."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    item_id: str
    text: str
    criteria_id: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of it.  `score` is None where no reply could be read; `reason` then says why.

    `prompts` are the messages as sent, one entry a prompt (() for a judge that is asked in no words), `replies` the
    raw replies, and `explanation` the judge's reasons, or what it computed on.
    """

    score: float | None
    reason: str
    explanation: str
    prompts: tuple[tuple[Message, ...], ...]
    replies: tuple[str, ...]
    notice: str
    usage: Usage = field(default_factory=Usage)


@requires("reviewer", "tried criteria on one item")
def start_trial(store: Store, settings: Settings, request: TrialRequest) -> str:
    """Ask the judge of `request.run_id` for the score of one item under `request.text` (`start_run`).

    An empty text asks without criteria.  UsageError for an item that the run's golden set does not have, for a held-out
    one (looking at those one by one would end their being held out), or for another aspect; CriteriaError for an
    overlong text; JobError when the run has no judge yet.
    """
    request = replace(request, run_id=judge_run(store, request.run_id), text=request.text.strip())
    if len(request.text) > LONGEST_TEXT:
        raise CriteriaError(f"Criteria may have {LONGEST_TEXT:,} characters; these have {len(request.text):,}.")
    of = calibration_asked(store, request.run_id)
    if (request.golden_id, request.aspect) != (of.golden_id, of.aspect):
        raise UsageError(f"The judge of that run was calibrated for {of.aspect} on another golden set.")
    if request.item_id not in trial_items(store, request.run_id):
        known = request.item_id in store.goldens.load(of.golden_id).item_ids
        why = "is held out. Try criteria on a calibration item" if known else "is not in the golden set"
        raise UsageError(f"The item {request.item_id[:60]!r} {why}.")
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{request.aspect} · criteria tried on {request.item_id[:60]} · {judge_words(spec)}"
    return start_run(store, settings, "trial", request, title=title, judge_spec=spec)


def trial_items(store: Store, run_id: str) -> tuple[str, ...]:
    """The ids of the items that criteria may be tried on with the judge of a run: all that are not held out."""
    golden = store.goldens.load(calibration_asked(store, run_id).golden_id)
    held_out = set(sides_of(store, run_id, golden).held_out)
    return tuple(item_id for place, item_id in enumerate(golden.item_ids) if place not in held_out)


def run_trial(work: RunWork) -> TrialResult:
    """Ask for one score, with reasons; it is entered nowhere."""
    from core.judging.judge_specs import NAMED, restore_judge
    from core.judging.llm_judge import LLMJudge

    request, golden = work.request(TrialRequest), work.golden
    task = calibration_asked(work.store, request.run_id).task(golden)
    item = golden.items[golden.item_ids.index(request.item_id)]
    criteria = Criteria(request.text, request.aspect, Provenance("given" if request.text else "none"))
    state = require_judge(work.store, request.run_id)
    work.progress.publish(Stage("trial", "asking the judge", 0, 1))
    with closing(restore_judge(state, work.settings, work.replies, gate=NAMED)) as judge:
        prompts = judge.prompts(task, item, criteria) if isinstance(judge, LLMJudge) else ()
        scores = judge.score(task, [item], [criteria], explain=True, on_progress=work.progress.advance)
        notice = judge.notice
    (verdict,) = scores.explained
    work.progress.publish(Stage("done", "done", 1, 1, scores.usage))
    if isinstance(verdict, Scored):
        return TrialResult(verdict.value, "", verdict.explanation, prompts, verdict.raw, notice, scores.usage)
    return TrialResult(None, verdict.reason, verdict.detail, prompts, verdict.raw, notice, scores.usage)
