"""Item by item: how criteria scored the calibration items of a run, and why."""

from __future__ import annotations

from typing import Literal

from core.errors import ConsentError, JobError, NotFoundError
from core.jobs.documents import kept_judge
from core.projects.access import requires
from core.projects.consent import gate_of
from core.projects.convert import judge_run, request_of
from core.projects.views import CalibrationRequest, ChangedItem, ItemScore, ItemView
from core.records import Scored
from core.settings import Settings
from core.store.store import Store


@requires("viewer")
def item_scores(store: Store, run_id: str, criteria_id: str) -> tuple[ItemScore, ...]:
    """The calibration items that the run scored with these criteria, largest |gap| first, unscored ones last.

    Held-out items are left out on purpose: looking at them one by one would end their being held out.  NotFoundError
    for an unknown run, or criteria that it did not score.
    """
    import numpy as np

    from core.calibration.refine import rank_gap, standardised_gap
    from core.public import split_for

    asked = _asked_for(store, run_id)
    golden = store.goldens.load(asked.golden_id)
    found = store.results.scores(run_id, golden.item_ids, [criteria_id])
    if not found.criteria_ids:
        raise NotFoundError(f"Run {run_id} has no scores of criteria {criteria_id}.")
    at = np.asarray(split_for(golden, asked.aspect, asked.settings).calibration, dtype=np.intp)
    scores, labels = found.values[0, at], golden.labels(asked.aspect)[at]
    reasons = {one.item_id: one.reason for one in found.unscored.get(criteria_id, ())}
    gaps, places = standardised_gap(scores, labels), rank_gap(scores, labels)
    rows = []
    for k in np.argsort(-np.nan_to_num(np.abs(gaps), nan=-1.0), kind="stable"):
        item = golden.items[at[k]]
        scored = not np.isnan(scores[k])
        if scored or item.item_id in reasons:
            score, gap = (float(scores[k]), float(gaps[k])) if scored else (None, None)
            reason, apart = reasons.get(item.item_id, ""), float(places[k]) if scored else None
            where = (item.item_id, item.source_id, item.system_id)
            rows.append(ItemScore(*where, float(labels[k]), score, gap, reason, apart))
    return tuple(rows)


@requires("viewer")
def item_changes(store: Store, run_id: str, criteria_id: str, parent_id: str) -> tuple[ChangedItem, ...]:
    """The calibration items that changed sides from `parent_id` to `criteria_id`, both as that run scored them.

    An item is misaligned where its |gap| reaches the calibration's `min_gap`.  Those whose gap moved most come first;
    items that either left unscored are no part.  NotFoundError where the run did not score both.
    """
    least = _asked_for(store, run_id).settings.min_gap
    before = {one.item_id: one for one in item_scores(store, run_id, parent_id)}
    changed = []
    for new in item_scores(store, run_id, criteria_id):
        old = before.get(new.item_id)
        if old is None or old.gap is None or new.gap is None or old.score is None or new.score is None:
            continue
        if (abs(old.gap) >= least) != (abs(new.gap) >= least):
            now: Literal["mended", "broken"] = "broken" if abs(new.gap) >= least else "mended"
            changed.append(ChangedItem(new.item_id, new.label, old.score, new.score, old.gap, new.gap, now))
    return tuple(sorted(changed, key=lambda one: -abs(abs(one.parent_gap) - abs(one.new_gap))))


@requires("viewer")
def explain_item(store: Store, settings: Settings, run_id: str, criteria_id: str, item_id: str) -> ItemView:
    """One item with what the judge of the run says of it under these criteria.

    An embedded judge is asked again, which costs nothing; a remote one's reply comes from the store, and where it is
    not there the explanation says so: nothing is ever sent from here.  JobError when the run did not score the item.
    """
    from core.judging.registry import restore_judge
    from core.public import task_of

    score = next((one for one in item_scores(store, run_id, criteria_id) if one.item_id == item_id), None)
    asked = _asked_for(store, run_id)
    of = judge_run(store, run_id)
    state = kept_judge(store, of)
    if score is None or state is None:
        raise JobError(f"Run {run_id} did not score item {item_id} with these criteria.")
    golden = store.goldens.load(asked.golden_id)
    item = golden.items[golden.item_ids.index(item_id)]
    project_id = store.runs.get(run_id).project_id
    criteria = store.criteria.get(project_id, criteria_id).criteria
    task = task_of(golden, asked.aspect, asked.definition, asked.scale)
    replies = store.replies.of_run(run_id, project_id)
    judge = restore_judge(state, settings, replies, gate=gate_of(store, store.runs.get(of), sends=False))
    try:
        (verdict,) = judge.explain(task, [item], criteria)
    except ConsentError as error:  # a remote judge's reply that is not kept here
        return ItemView(item, score, str(error), ())
    finally:
        judge.close()
    words = verdict.explanation if isinstance(verdict, Scored) else verdict.detail
    return ItemView(item, score, words, verdict.raw)


def _asked_for(store: Store, run_id: str) -> CalibrationRequest:
    request = request_of(store.runs.get(judge_run(store, run_id)))
    if not isinstance(request, CalibrationRequest):
        raise JobError(f"Run {run_id} names no calibration.")
    return request
