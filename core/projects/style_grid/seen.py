"""Which items' labels stand behind criteria: nothing may be reported on those."""

from __future__ import annotations

from collections.abc import Sequence

from core.projects.calibration import CalibrationRequest
from core.records import Criteria, GoldenSet
from core.store.codec import unpack
from core.store.store import Store


def criteria_saw(store: Store, golden: GoldenSet, criteria: Criteria) -> tuple[int, ...]:
    """Positions in `golden` whose labels chose or fitted these criteria, ascending.

    Those are the calibration items of every calibration that scored a member of the criteria's family, and the items
    that drafts and refinements of the family were shown.  The family are the ancestors, and whatever has the same
    text: a copy in another project or for another aspect has seen what the original saw.  Items of another golden set
    count where the same text stands here.
    """
    if not criteria.text:
        return ()
    family = _family(store, criteria)
    names = {one.criteria_id for one in family}
    shown = {item_id for one in family for item_id in one.provenance.item_ids}
    seen = {k for k, item_id in enumerate(golden.item_ids) if item_id in shown}
    loaded = {golden.digest: golden}
    for project in store.projects.all():
        stood = {row.run_id for row in store.criteria.alignments(project.project_id) if row.criteria_id in names}
        for run in store.runs.all(project.project_id):
            if run.kind != "calibration":
                continue
            if run.golden_id not in loaded:
                loaded[run.golden_id] = store.goldens.load(run.golden_id)
            theirs, asked = loaded[run.golden_id], unpack(CalibrationRequest, run.request_json)
            scored = run.run_id in stood or store.results.scores(run.run_id, theirs.item_ids, list(names)).criteria_ids
            if scored:
                seen.update(_same_items(golden, theirs, asked.split(theirs).calibration))
    return tuple(sorted(seen))


def _same_items(golden: GoldenSet, theirs: GoldenSet, positions: Sequence[int]) -> set[int]:
    """Positions in `golden` of the items at `positions` of another golden set, or of itself; by their texts."""
    if theirs is golden:
        return set(positions)
    texts = {(theirs.items[k].source, theirs.items[k].target) for k in positions}
    return {k for k, item in enumerate(golden.items) if (item.source, item.target) in texts}


def _family(store: Store, criteria: Criteria) -> list[Criteria]:
    """The criteria, their ancestors, and all criteria of the store with the text of one of them."""
    known = [row.criteria for project in store.projects.all() for row in store.criteria.all(project.project_id)]
    family: list[Criteria] = []
    texts: set[str] = set()
    waiting = [criteria]
    while waiting:
        text = _folded(waiting.pop())
        if text in texts:
            continue
        texts.add(text)
        same = [one for one in known if _folded(one) == text]
        family += same
        parents = {parent for one in same for parent in one.provenance.parents}
        waiting += [one for one in known if one.criteria_id in parents]
    return family or [criteria]


def _folded(criteria: Criteria) -> str:
    return " ".join(criteria.text.split())
