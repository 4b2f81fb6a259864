"""Edit, name, score and refine the criteria of a project.

Approvals apply to versions of the judge (`core.projects.judge_line`), not to criteria.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count
from textwrap import shorten

from core.calibration.calibration_records import RoundSettings
from core.calibration.proposals import RoundResult
from core.errors import CriteriaError, UsageError
from core.progress import Stage
from core.projects.calibration import calibration_asked, split_of_run
from core.projects.labelling import with_reasons
from core.projects.start_and_resume import KINDS, Kind, RunWork, judge_run, require_judge
from core.records import Alignment, Criteria, Interval, Measure, Provenance, Usage
from core.settings import Settings
from core.stats import Difference
from core.store.labels import Draft
from core.store.store import Store, requires
from core.wording import counted, judge_words

LONGEST_TEXT = 20_000
"""Maximum length of criteria in characters."""


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_POINT, _LONGEST_NAME = 48, 80
_END = re.compile(r"[.;!?](?=\s|$)|:$|[。！？；\n\r]+", re.MULTILINE)
_LEAD = re.compile(
    r"^[\W\d_]*(?:(?:above all|most of all|very|strongly|slightly|always|to some extent|finally),?\s+)*"
    r"(?:(?:reward|favou?r|prefer|(penali[sz]e|punish))\s+(?:texts?|summaries|answers|replies)\s+(?:that|which)\s+"
    r"(?:(?:are|have|hold|use)\s+)?)?",
    re.IGNORECASE,
)
"""Bullets, levels and emphasis at the start of a point, then the fixed start of an offline judge's line."""
_FRAME = re.compile(r"(?:judge|rate|score|assess|evaluate|with these points|start (?:from|at) \d)\b", re.IGNORECASE)


@lru_cache(maxsize=2_000)
def _points(text: str) -> tuple[str, ...]:
    """Split criteria into points, each short enough for a name."""
    points = []
    for clause in _END.split(text[:8_000]):
        words = "".join(sign if sign.isprintable() else " " for sign in clause)
        lead = _LEAD.match(words)
        rest = " ".join(words[lead.end() if lead else 0 :].split()).strip(" ,–—-")
        for name in (rest.partition(": ")[0], rest):  # "Be brief" of "Be brief: take off 1 for more than 25 words"
            if len(name) > 1:
                short = shorten(name, _LONGEST_POINT, placeholder="…")
                short = f"{name[: _LONGEST_POINT - 1]}…" if short == "…" else short  # a single very long word
                points.append(f"Penalise: {short}" if lead and lead[1] else short[:1].upper() + short[1:])
    return tuple(dict.fromkeys(points))


def criteria_names(store: Store, project_id: str, aspect: str, beside: Iterable[Criteria] = ()) -> Mapping[str, str]:
    """Name each criteria of an aspect after one or two of its points. Return a dict from id to name.

    All names differ. Points that are also in the parents are used last. A name stays the same when
    criteria are added to the project. `beside` are criteria of an unfinished run, which are not yet in the project.
    """
    kept = sorted(store.criteria.texts(project_id, aspect), key=lambda pair: (pair[1], pair[0].criteria_id))
    texts = {criteria.criteria_id: criteria for criteria, _ in kept}
    for criteria in sorted(beside, key=lambda each: each.provenance.round):
        texts.setdefault(criteria.criteria_id, criteria)
    names: dict[str, str] = {}
    taken: set[str] = set()
    for criteria_id, criteria in texts.items():
        before = {point for each in criteria.provenance.parents if each in texts for point in _points(texts[each].text)}
        points = [*_points(criteria.text)]
        points = [point for point in points if not _FRAME.match(point)] or points
        # otherwise an edit could be named after a point that it did not change
        new = [point for point in points if point not in before] or points
        new = new or ["Criteria" if criteria.text.strip() else "Baseline"]
        pairs = (
            f"{one} + {other[0].lower()}{other[1:]}"
            for one in new
            for other in (new + points)[:20]
            if not (one.startswith(other) or other.startswith(one))
        )
        numbered = (f"{new[0]} ({number})" for number in count(2))
        free = (each for each in chain(new, pairs, numbered) if each.casefold() not in taken)
        name = next(each for each in free if len(each) <= _LONGEST_NAME)
        names[criteria_id] = name
        taken.add(name.casefold())
    return names


# ── edits ──────────────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer", "edited criteria")
def save_edit(
    store: Store,
    project_id: str,
    parent_id: str,
    text: str,
    author: str = "",
    *,
    note: str = "",
    expected_head: str | None = None,
) -> str:
    """Save an edit of the criteria `parent_id` and return its id, or the parent's id if the text is the same.

    Args:
        parent_id: The edited criteria.
        author: Name of the author, for a user who is not signed in.
        note: A note on the edit.
        expected_head: `CriteriaEntry.head` that the author saw. With None, the edit is saved even if somebody else has
            saved an edit since.

    Raises:
        ConflictError: Somebody else has saved an edit since. `theirs` is its text.
        CriteriaError: The text is empty or has over 20,000 characters.
        NotFoundError: The parent is unknown.
    """
    parent = store.criteria.get(project_id, parent_id).criteria
    trimmed = _storable(text).strip()
    if not trimmed:
        raise CriteriaError("The criteria are empty. Enter criteria, or choose the baseline to judge without criteria.")
    if len(trimmed) > LONGEST_TEXT:
        raise CriteriaError(
            f"Criteria can have at most {LONGEST_TEXT:,} characters, but these have {len(trimmed):,}. Shorten them."
        )
    author = store.actor.name if store.actor.subject else author.strip() or store.actor.name
    provenance = Provenance("edit", parent.provenance.round, (parent_id,), author=author, note=note.strip())
    edit = Criteria(trimmed, parent.aspect, provenance)
    if edit.criteria_id == parent_id:
        return parent_id
    return store.criteria.save_edit(project_id, parent_id, edit, expected_head)


# ── drafts of texts ────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def save_draft(store: Store, project_id: str, subject: str, text: str, *, base: str = "") -> Draft:
    """Save the user's unfinished text about `subject`. It replaces the user's earlier draft."""
    return store.drafts.keep(project_id, subject, store.actor.name, _storable(text), base)


def _storable(text: str) -> str:
    """Replace lone surrogates, which the store cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def get_draft(store: Store, project_id: str, subject: str) -> Draft | None:
    """Return the user's draft about `subject`; None if there is none."""
    return store.drafts.get(project_id, subject, store.actor.name)


@requires("reviewer")
def delete_draft(store: Store, project_id: str, subject: str) -> None:
    """Delete the user's draft about `subject`."""
    store.drafts.drop(project_id, subject, store.actor.name)


# ── runs with the judge of a calibration ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """A request to score edited criteria and their parent with the judge of run `run_id`.

    The items to score are the calibration items of that run.
    """

    project_id: str
    golden_id: str
    aspect: str
    criteria_id: str
    parent_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """A request to refine the criteria `parent_ids` with the judge of calibration `run_id`.

    `item_ids` are the calibration items to learn from. If it is empty, the most misaligned items are sampled.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    parent_ids: tuple[str, ...]
    item_ids: tuple[str, ...] = ()
    settings: RoundSettings = field(default_factory=RoundSettings)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The alignment of new criteria minus that of their parent, on the `n` items scored with both.

    `value` is None if it is undefined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int
    p_reason: str = ""

    @classmethod
    def of(cls, difference: Difference) -> PairedDifference:
        return cls(difference.value, difference.interval, difference.p, difference.n, difference.p_reason)


# ── score an edit ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RescoreResult:
    """The alignments of an edit and its parent on calibration items, and their difference.

    `unread` is a warning about lines of the edit that the judge can't read; "" for none.
    """

    parent: Alignment
    new: Alignment
    difference: PairedDifference
    unread: str = ""


def _check_rescore(store: Store, settings: Settings, request: RescoreRequest) -> tuple[RescoreRequest, str, str]:
    author = store.criteria.get(request.project_id, request.criteria_id).author
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    return request, f"{request.aspect} · edit{f' by {author}' if author else ''} · {judge_words(spec)}", spec


def run_rescore(work: RunWork) -> RescoreResult:
    """Score an edit and its parent on calibration items, compare them, and save their alignments."""
    from core.calibration.loop import unread_lines_warning
    from core.stats import LabelledItems, paired_difference

    request, golden = work.request(RescoreRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split, chosen = of.task(golden), split_of_run(work.store, request.run_id, golden), of.settings
    ids = (request.criteria_id, request.parent_id)
    pair = [work.store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in ids]
    items = LabelledItems.of(golden, task.aspect, split.calibration)
    measure = Measure(chosen.statistic, chosen.level or items.usual_level)
    expected = 2 * len(split.calibration)
    with work.asking(require_judge(work.store, request.run_id), task) as judge:
        work.progress.publish(Stage("revisit", "scoring calibration items", 0, expected, Usage()))
        scored = judge.score(pair, split.calibration)
        new, parent = scored.values
        work.progress.publish(Stage("done", "done", expected, expected, scored.usage))
    both = paired_difference(new, parent, items, measure, seed=chosen.seed)
    measured = zip(ids, (both.a, both.b), strict=True)
    work.add_alignments([work.alignment(criteria_id, "calibration", each) for criteria_id, each in measured])
    return RescoreResult(both.b, both.a, PairedDifference.of(both), unread_lines_warning(judge.judge, pair[:1]))


# ── refinement rounds ──────────────────────────────────────────────────────────────────────────────────────────


def round_cost(store: Store, run_id: str, n_parents: int, settings: RoundSettings) -> int:
    """Return the maximum number of calls of a refinement round."""
    from core.calibration.proposals import round_calls

    golden = store.goldens.load(calibration_asked(store, run_id).golden_id)
    return round_calls(len(split_of_run(store, run_id, golden).calibration), n_parents, settings)


def _check_round(store: Store, settings: Settings, request: RoundRequest) -> tuple[RoundRequest, str, str]:
    if not request.parent_ids:
        raise UsageError("Choose at least one set of criteria to refine.")
    for criteria_id in request.parent_ids:
        store.criteria.get(request.project_id, criteria_id)
    require_judge(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    split = split_of_run(store, request.run_id, golden)
    allowed = {golden.items[k].item_id for k in split.calibration}
    strange = [item_id for item_id in request.item_ids if item_id not in allowed]
    if strange:
        raise UsageError(
            f"{len(strange)} of the picked items have no label or aren't in the run's calibration set "
            f"({strange[0][:60]}). Pick only labelled calibration items. A round must not learn from held-out items."
        )
    learnt = f"{len(request.item_ids)} picked items" if request.item_ids else "sampled items"
    spec = store.runs.get(request.run_id).judge_spec
    refined = f"round on {counted(len(request.parent_ids), 'set')} of criteria"
    return request, f"{request.aspect} · {refined}, {learnt} · {judge_words(spec)}", spec


def run_round(work: RunWork) -> RoundResult:
    """Propose refined criteria, and save them with their alignments."""
    from core.calibration.proposals import refinement_round

    request, golden = work.request(RoundRequest), work.golden
    of, split = calibration_asked(work.store, request.run_id), split_of_run(work.store, request.run_id, golden)
    entries = [work.store.criteria.get(request.project_id, criteria_id) for criteria_id in request.parent_ids]
    parents = tuple(entry.criteria for entry in entries)
    positions = tuple(golden.item_ids.index(item_id) for item_id in request.item_ids)
    number = 1 + max(parent.provenance.round for parent in parents)
    with work.asking(require_judge(work.store, request.run_id), of.task(golden)) as judge:
        written = with_reasons(work.store, request.project_id, golden, request.aspect, work.run.created_at)
        asked = replace(judge, golden=written)
        result = refinement_round(asked, split, of.settings, parents, request.settings, picks=positions, number=number)
    work.add_criteria([proposal.criteria for proposal in result.proposals])
    alignments = {}
    for proposal in result.proposals:
        new_id, parent_id, measured = proposal.criteria.criteria_id, proposal.parent_id, proposal.calibration
        alignments[parent_id] = work.alignment(parent_id, "calibration", measured.b)
        alignments[new_id] = work.alignment(new_id, "calibration", measured.a, "proposed")
    work.add_alignments(list(alignments.values()))
    return result


KINDS["rescore"] = Kind(RescoreRequest, RescoreResult, "re-scored an edit", _check_rescore, run_rescore)
KINDS["round"] = Kind(RoundRequest, RoundResult, "started a refinement round", _check_round, run_round)
