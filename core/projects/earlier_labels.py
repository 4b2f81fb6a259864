"""What earlier passes already say of the items of a new one: shown to whoever begins it, taken over by choice."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import UsageError
from core.labelling.plan import LabelAspect
from core.projects.access import requires
from core.projects.views.labelling import EarlierLabels, PassRequest
from core.store.rows import LabelRow
from core.store.store import Store


@requires("viewer")
def earlier_labels(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[LabelAspect]
) -> tuple[EarlierLabels, ...]:
    """Who labelled how many items of the golden set on these aspects, pass by pass; what lies off a scale is no part.

    In the order in which they were given.
    """
    items: dict[tuple[str, str], set[str]] = {}
    for row in _fitting(store.labels.of_golden(project_id, golden_id), aspects):
        items.setdefault((row.pass_id, row.rater), set()).add(row.item_id)
    return tuple(EarlierLabels(*which, len(said)) for which, said in items.items())


def chosen_labels(store: Store, request: PassRequest, item_ids: Sequence[str]) -> list[LabelRow]:
    """The labels that a request for a pass takes over, of its items and aspects alone.

    UsageError where somebody is named who has none.
    """
    if not request.take_over:
        return []
    items, wanted = set(item_ids), set(request.take_over)
    fitting = _fitting(store.labels.of_golden(request.project_id, request.golden_id), request.aspects)
    chosen = [row for row in fitting if (row.pass_id, row.rater) in wanted]
    if missing := wanted - {(row.pass_id, row.rater) for row in chosen}:
        pass_id, rater = min(missing)
        raise UsageError(f"{rater} gave no labels in pass {pass_id[:24]!r} that this pass could take over.")
    return [row for row in chosen if row.item_id in items]


def _fitting(rows: Sequence[LabelRow], aspects: Sequence[LabelAspect]) -> list[LabelRow]:
    known = {one.aspect: one for one in aspects}
    return [
        row
        for row in rows
        if row.pass_id and row.aspect in known and (row.value is None or known[row.aspect].takes(row.value))
    ]
