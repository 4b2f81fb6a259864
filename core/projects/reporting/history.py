"""How the criteria came about: versions with their ancestors, edits, rounds, votes, decisions and sign-off."""

from __future__ import annotations

from collections import Counter

from core.kept import CriteriaAlignment, CriteriaEntry
from core.projects.meetings import list_meetings
from core.projects.reporting.basis import Basis
from core.projects.reviews import list_reviews
from core.projects.rounds import Relative, family_tree, list_proposals
from core.projects.views.reports import History, RoundFact, Version
from core.records import Alignment
from core.review.criteria import Review

_MOST_VERSIONS = 60


def history(basis: Basis) -> History:
    """The versions that led to the judge, those that people touched, and what was decided about them."""
    store, golden_id = basis.store, basis.golden.digest
    family = family_tree(store, basis.project_id, basis.aspect, golden_id)
    reviews = list_reviews(store, basis.project_id)
    rows = {
        row.criteria.criteria_id: row
        for row in store.criteria.all(basis.project_id, aspect=basis.aspect, golden_id=golden_id)
    }
    told = _told(basis, family, reviews)
    shown = [one for one in family if one.criteria.criteria_id in told]
    kept = _kept(basis, shown)
    return History(
        made=dict(Counter(one.criteria.origin for one in family if one.criteria.origin != "none").most_common()),
        versions=tuple(_version(basis, one, rows[one.criteria.criteria_id], reviews) for one in kept),
        n_more=len(shown) - len(kept),
        rounds=_rounds(basis),
        meetings=tuple(
            one
            for one in reversed(list_meetings(store, basis.project_id))
            if (one.golden_id, one.aspect) == (golden_id, basis.aspect)
        ),
    )


def others_approved(basis: Basis, told: History) -> tuple[str, ...]:
    """Approved criteria that the judge does not hold."""
    return tuple(one.criteria_id for one in told.versions if one.state == "approved" and not one.chosen)


def _chosen_ids(basis: Basis) -> list[str]:
    return [one.criteria_id for one in basis.calibration.chosen]


def _told(basis: Basis, family: list[Relative], reviews: dict[str, Review]) -> set[str]:
    """The judge's criteria, what people edited, gave or decided on, and the ancestors of all of these."""
    by_id = {one.criteria.criteria_id: one.criteria for one in family}
    waiting = [name for name in _chosen_ids(basis) if name in by_id]
    waiting += [name for name, one in by_id.items() if one.origin in ("edit", "given")]
    waiting += [name for name, review in reviews.items() if name in by_id and review.changes]
    told: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in told:
            told.add(name)
            waiting += [parent for parent in by_id[name].parents if parent in by_id]
    return told


def _kept(basis: Basis, shown: list[Relative]) -> list[Relative]:
    """At most so many versions, the judge's own among them, in the order of `shown`."""
    chosen = set(_chosen_ids(basis))
    order = sorted(range(len(shown)), key=lambda k: (shown[k].criteria.criteria_id not in chosen, k))
    return [shown[k] for k in sorted(order[:_MOST_VERSIONS])]


def _version(basis: Basis, one: Relative, row: CriteriaEntry, reviews: dict[str, Review]) -> Version:
    criteria, review = one.criteria, reviews.get(one.criteria.criteria_id)
    return Version(
        criteria_id=criteria.criteria_id,
        text=criteria.text,
        origin=criteria.origin,
        round=row.criteria.provenance.round,
        depth=one.depth,
        parents=criteria.parents,
        author=criteria.author,
        note=criteria.note,
        at=criteria.created_at,
        chosen=criteria.criteria_id in _chosen_ids(basis),
        state=one.review,
        changes=() if review is None else review.changes,
        n_comments=0 if review is None else len(review.comments),
        calibration=_stood(criteria.alignments, "calibration", basis.run.run_id),
        held_out=_stood(criteria.alignments, "held-out", basis.run.run_id),
    )


def _stood(alignments: tuple[CriteriaAlignment, ...], side: str, run_id: str) -> Alignment | None:
    """How criteria stood on that side: in this calibration, else in the newest run that measured them there."""
    found = [one for one in alignments if one.side == side]
    own = [one for one in found if one.run_id == run_id]
    return next((one.alignment for one in (*own, *found)), None)


def _rounds(basis: Basis) -> tuple[RoundFact, ...]:
    facts = []
    for run in reversed(basis.store.runs.all(basis.project_id)):
        ours = (run.kind, run.golden_id, run.aspect) == ("round", basis.golden.digest, basis.aspect)
        proposals = list_proposals(basis.store, run.run_id) if ours and run.status in ("done", "budget") else []
        if proposals:
            states = Counter(one.state for one in proposals)
            facts.append(
                RoundFact(
                    run.run_id,
                    run.created_at,
                    len(proposals),
                    states["accepted"],
                    states["rejected"],
                    states["open"],
                )
            )
    return tuple(facts)
