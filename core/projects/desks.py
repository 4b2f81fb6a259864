"""A rater's desk in a labelling pass: what they have to rate, what they have saved, and how long the rest may take.

After a press only what was saved since is read, so a desk costs the same on the first item and on the thousandth.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from core.projects.access import requires
from core.projects.labelling import JOINED, REMARK, get_pass, named_rater
from core.projects.views.labelling import DeskView, PassView, SavedLabel
from core.store.rows import LabelRow
from core.store.store import Store

_PAUSE_SECONDS = 600.0
"""A longer gap between two saves is a break, and says nothing about a rater's pace."""


@requires("annotator")
def sit_down(store: Store, project_id: str, pass_id: str, *, seen: tuple[PassView, DeskView] | None = None) -> DeskView:
    """What the person who acts has to rate in a pass, and what they have saved; the first call makes them a rater.

    `seen` is what an earlier call gave, with the pass as it was: the same comes back unless something was saved since.
    UsageError when nobody said who they are.
    """
    rater = named_rater(store)
    if seen is not None and (seen[1].pass_id, seen[1].rater) == (pass_id, rater):
        return _brought_up(store, *seen)
    found = get_pass(store, project_id, pass_id)
    if rater not in found.raters:
        form = f"joined:{uuid.uuid5(uuid.NAMESPACE_OID, f'{pass_id}:{rater}').hex}"
        store.events.add(project_id, JOINED, pass_id, store.actor, {"did": f"joined {found.name}"}, form=form)
        found = get_pass(store, project_id, pass_id)
    items = store.goldens.load(found.golden_id).items
    assigned = tuple(items[k].item_id for k in found.plan.assigned(found.raters.index(rater)))
    empty = DeskView(pass_id, rater, assigned, {}, assigned[0] if assigned else None, None)
    return _brought_up(store, found, empty)


def _brought_up(store: Store, found: PassView, desk: DeskView) -> DeskView:
    """The desk with what its rater said since its version; the very same where that is nothing."""
    new = store.labels.since(found.project_id, found.pass_id, desk.rater, desk.version)
    if not new:
        return desk
    now = replace(_laid(desk, [row for _, row in new], [one.aspect for one in found.plan.aspects]), version=new[-1][0])
    n_open = len(now.assigned) - now.n_done
    return replace(
        now,
        first_open=next((one for one in now.assigned if one not in now.saved), None),
        seconds_left=_seconds_left(now.finished.values(), n_open),
    )


def _laid(desk: DeskView, rows: Sequence[LabelRow], aspects: Sequence[str]) -> DeskView:
    """The desk with `rows` (oldest first) upon it: a later label replaces an earlier one, and so does a comment."""
    assigned, known = set(desk.assigned), {*aspects, REMARK}
    saved, begun, finished = dict(desk.saved), dict(desk.begun), dict(desk.finished)
    for row in rows:
        if row.item_id not in assigned or row.aspect not in known:
            continue
        before = saved.get(row.item_id) or begun.get(row.item_id) or SavedLabel({}, "")
        new = {} if row.aspect == REMARK else {row.aspect: row.value}
        taken = {aspect: pass_id for aspect, pass_id in before.taken.items() if aspect not in new}
        if row.taken_from:
            taken[row.aspect] = row.taken_from
        said = SavedLabel({**before.values, **new}, row.comment, taken)
        if len(said.values) < len(aspects):
            begun[row.item_id] = said
            continue
        begun.pop(row.item_id, None)
        saved[row.item_id] = said
        if new and not row.taken_from:
            finished[row.item_id] = row.created_at
    return replace(desk, saved=saved, begun=begun, finished=finished)


def _seconds_left(finished: Collection[float], n_open: int) -> float | None:
    """The rater's median time between items, breaks left out, for each item that is open; None before three items."""
    gaps = np.diff(np.unique(np.fromiter(finished, dtype=float)))
    gaps = gaps[(gaps > 0) & (gaps < _PAUSE_SECONDS)]
    return float(np.median(gaps) * n_open) if gaps.size >= 2 else None
