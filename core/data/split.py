"""What of a golden set judges are calibrated and measured on: the aspect, the split, the labels it takes, texts seen.

Split by source, or by source and system, so that nothing judged held out was seen before (METHODS §4: selecting and
reporting on the same items is optimistic, so the split is made before anything is drafted).

How many labels calibrating takes counts *calibration* labels, those that choose the criteria: where half of the
sources are held out, about half of all labels.  Measured over 34 runs of the offline judge on public sets, with
its drafts and refinements alone (`fit_strengths=False`), mean alignment with raters on held-out items (METHODS §7).

Which items are the same text is known by short digests that a file can hold without holding the texts: of its target,
source and context, as a judge sees them, not of ids, labels or ratings.  Line ends (CR LF, CR) and Unicode forms (NFC)
are made alike first, and nothing else is.  A digest is 12 hex digits (48 bits) of a SHA-256: among 1,600 known texts
and 100,000 others one is taken for known by chance in 1 of 1.8 million files.  It does not give a text away; whoever
has a text can tell whether it was among them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from core.errors import AspectError, GoldenError, UsageError
from core.records import AspectLabels, GoldenSet, IntArray, Item, Scale, Split, Task, content_digest
from core.wording import counted

SplitKind = Literal["sources", "sources+systems"]
CALIBRATION_NAMES = frozenset("calibration calib cal train training dev development validation valid val".split())
HELD_OUT_NAMES = frozenset("held_out held-out heldout test testing eval evaluation".split())
DIGITS = 12

LEAST = 8
"""Fewer calibration labels cannot be told apart from chance: nothing is calibrated."""
TO_STACK = 50
"""Fewer labels to fit on, and no weights are learnt for a fusion."""
ENOUGH = 100
"""Calibration labels that are recommended; with fewer, refining was measured to fit their noise."""
ENOUGH_IN_ALL = 200
"""The same with half of the sources held out."""


def task_of(golden: GoldenSet, aspect: str, definition: str = "", scale: Scale | None = None) -> Task:
    """The task of rating `aspect`; AspectError lists the aspects there are when it is absent."""
    if aspect not in golden.aspects:
        names = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {names}. Name one of them.", file=golden.name)
    return Task(aspect, golden.kind, scale or golden.aspects[aspect].scale, definition)


def usable_aspect(golden: GoldenSet, aspect: str) -> AspectLabels:
    """The labels of `aspect`, fit to be used.

    AspectError, with the way out, when the aspect is absent, has fewer than 2 labels, or all its labels are equal.
    """
    if aspect not in golden.aspects:
        names = ", ".join(golden.aspects) or "none"
        raise AspectError(f"There is no aspect {aspect[:100]!r}; aspects with labels: {names}.", file=golden.name)
    labels = golden.aspects[aspect]
    values = {value for value in labels.values if value is not None}
    if labels.n_labelled < 2:
        raise AspectError(
            f"Aspect {aspect!r} has {labels.n_labelled} label(s); at least 2 are needed, and {ENOUGH_IN_ALL} are "
            "recommended. Label more items.",
            file=golden.name,
        )
    if len(values) == 1:
        raise AspectError(
            f"All {labels.n_labelled} labels of {aspect!r} are {values.pop():g}: nothing can agree or disagree with "
            "them. Choose another aspect, or label items of differing quality.",
            file=golden.name,
        )
    return labels


# ── how many labels are enough ───────────────────────────────────────────────────────────────────────────────────


def few_labels(n: int, *, refining: bool = False) -> str:
    """Say in a sentence or two that `n` calibration labels are few; "" for 100 or more.

    In 34 measured runs with drafted criteria, calibrating did worse than the baseline in 44 % of runs on 50 labels
    and in 26 % on 100; on 20 it reached 0.495, the baseline 0.500, and 0.520 without refining.
    """
    if n >= ENOUGH:
        return ""
    risk = " Refining may fit their noise." if refining else " Results may be no better than the baseline."
    return f"Only {n} labels to calibrate on; we recommend {ENOUGH}.{risk}"


def few_held_out(n: int) -> str:
    """Say that `n` held-out labels are few; "" for 100 or more."""
    return "" if n >= ENOUGH else f"Only {n} held-out labels, so the interval is wide."


def too_few_to_stack(n: int) -> str:
    """Why no weights are learnt on `n` labels; "" where they are enough."""
    if n >= TO_STACK:
        return ""
    return f"{n} labels are left to fit on, and weights take {TO_STACK}, since on fewer they fit noise"


# ── the split ────────────────────────────────────────────────────────────────────────────────────────────────────


class Fold(NamedTuple):
    """Positions (into `GoldenSet.items`) to fit on and to validate on; no source is in both."""

    fit: tuple[int, ...]
    validation: tuple[int, ...]


def split_sources(
    golden: GoldenSet,
    *,
    aspect: str,
    fraction: float = 0.5,
    seed: int = 0,
    kind: SplitKind = "sources",
    given: bool = False,
) -> Split:
    """Split the items labelled on `aspect` into calibration and held-out.

    `fraction` (0 to 1, ends excluded) of the sources, rounded, go to calibration.  "sources+systems" also holds out
    half of the systems: calibration keeps items of the other systems only, held-out those of held-out systems only, so
    that neither source nor system is shared; the rest is `dropped`.  `given` takes the file's ``split`` column instead.
    The same seed gives the same split.  AspectError when the aspect or what either part would hold cannot be used;
    GoldenError for fewer than 2 sources or systems or an unusable ``split`` column; UsageError for a bad `fraction`.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction for calibration must lie between 0 and 1, {fraction:g} came.")
    if kind not in ("sources", "sources+systems"):
        raise UsageError(f"The split must be 'sources' or 'sources+systems', not {kind!r}.")
    usable_aspect(golden, aspect)
    labelled = np.flatnonzero(np.isfinite(golden.labels(aspect)))
    if given:
        return _given_split(golden, labelled, aspect, kind, seed)
    rng = np.random.default_rng(seed)
    fitting = _share(golden.source_codes[labelled], fraction, rng, f"the sources labelled on {aspect!r}", golden.name)
    seen = fitting
    if kind == "sources+systems":
        _require_systems(golden, labelled)
        seen = _share(golden.system_codes[labelled], 0.5, rng, f"the systems labelled on {aspect!r}", golden.name)
    return _divided(golden, aspect, labelled, fitting & seen, ~fitting & ~seen, kind=kind, seed=seed)


def grown_split(
    split: Split, old: GoldenSet, new: GoldenSet, *, aspect: str, fraction: float = 0.5, seed: int | None = None
) -> Split:
    """The `split` of `old`, taken on to `new`: known sources keep their side, and only new ones are divided.

    A source is known when its text is (`source_digest`), whatever its id; all its items labelled in `new` go to its
    side.  Of the new sources `fraction` go to calibration, drawn as in `split_sources` (one alone falls to either side
    with that chance); `seed` None takes the seed of `split`.  With "sources+systems" known systems keep their side
    too.  GoldenError for a source whose text is on both sides, unless its id tells which one it was.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction for calibration must lie between 0 and 1, {fraction:g} came.")
    usable_aspect(new, aspect)
    labelled = np.flatnonzero(np.isfinite(new.labels(aspect)))
    seed = split.seed if seed is None else seed
    rng = np.random.default_rng(seed)
    sides = _known_sides(split, old, new)
    kept = [sides.get(new.items[k].source_id) for k in labelled]
    fitting = _kept_or_drawn(kept, new.source_codes[labelled], fraction, rng)
    seen = fitting
    if split.kind == "sources+systems":
        _require_systems(new, labelled)
        known = {old.items[k].system_id: True for k in split.calibration}
        known |= {old.items[k].system_id: False for k in split.held_out}
        kept = [known.get(new.items[k].system_id) for k in labelled]
        seen = _kept_or_drawn(kept, new.system_codes[labelled], 0.5, rng)
    return _divided(new, aspect, labelled, fitting & seen, ~fitting & ~seen, kind=split.kind, seed=seed)


def _known_sides(split: Split, old: GoldenSet, new: GoldenSet) -> dict[str, bool]:
    """source_id in `new` → whether it calibrates, of the sources whose text has a side in `old`."""
    by_source = has_sources(old) and has_sources(new)
    by_text: dict[str, set[bool]] = {}
    by_id: dict[tuple[str, str], bool] = {}
    for positions, calibrates in ((split.calibration, True), (split.held_out, False)):
        for item in (old.items[k] for k in positions):
            digest = source_digest(item, by_source=by_source)
            by_text.setdefault(digest, set()).add(calibrates)
            by_id[item.source_id, digest] = calibrates
    found: dict[str, set[bool]] = {}
    for item in new.items:
        digest = source_digest(item, by_source=by_source)
        sides = by_text.get(digest, set())
        if len(sides) > 1 and (item.source_id, digest) in by_id:
            sides = {by_id[item.source_id, digest]}
        found.setdefault(item.source_id, set()).update(sides)
    both = [name for name, sides in found.items() if len(sides) > 1]
    if both:
        raise GoldenError(
            f"The text of source {both[0][:80]!r} was on both sides of the split ({len(both)} sources). "
            "Take it out of the file, or give it the id it had.",
            file=new.name,
        )
    return {name: sides.pop() for name, sides in found.items() if sides}


def _kept_or_drawn(known: Sequence[bool | None], codes: IntArray, fraction: float, rng: Generator) -> NDArray[np.bool_]:
    """(n,) bool: whether each entry calibrates, as `known` or, where that is None, as drawn by its code."""
    chosen = np.array([bool(side) for side in known], dtype=np.bool_)
    fresh = np.flatnonzero([side is None for side in known])
    distinct = np.unique(codes[fresh])
    if distinct.size > 1:
        chosen[fresh] = _share(codes[fresh], fraction, rng, "the new sources")
    elif distinct.size:
        chosen[fresh] = rng.random() < fraction
    return chosen


def calibration_labels(golden: GoldenSet, aspect: str) -> int | None:
    """How many labels of `aspect` would choose criteria with the usual split; None where nothing can be split."""
    try:
        return len(split_sources(golden, aspect=aspect).calibration)
    except (AspectError, GoldenError):
        return None


def inner_fold(positions: Sequence[int], source_codes: IntArray, fraction: float, seed: int) -> Fold:
    """Split `positions` by source for gating refinements: about `fraction` of the sources to fit on.

    `source_codes` (n_items,) as in `GoldenSet.source_codes`.  GoldenError for fewer than 2 sources.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction to fit on must lie between 0 and 1, {fraction:g} came.")
    chosen = np.asarray(sorted(positions), dtype=np.intp)
    fitting = _share(source_codes[chosen], fraction, np.random.default_rng(seed), "the calibration sources")
    return Fold(_positions(chosen[fitting]), _positions(chosen[~fitting]))


def _share(codes: IntArray, fraction: float, rng: Generator, what: str, file: str | None = None) -> NDArray[np.bool_]:
    """(n,) bool: whether each entry's code is among a random `fraction` of the distinct ones, at least 1 in, 1 out."""
    distinct = np.unique(codes)
    if distinct.size < 2:
        raise GoldenError(f"At least 2 are needed to split {what}, {distinct.size} came.", file=file)
    n = min(max(round(fraction * distinct.size), 1), distinct.size - 1)
    return np.isin(codes, rng.permutation(distinct)[:n])


def _given_split(golden: GoldenSet, labelled: IntArray, aspect: str, kind: SplitKind, seed: int) -> Split:
    """The split named in the file; items with any other name are dropped."""
    if not golden.given_split:
        raise GoldenError("The file has no split column (calibration / held_out).", file=golden.name, column="split")
    names = [golden.given_split[position].strip().lower() for position in labelled]
    fitting, held_out = (
        np.array([name in side for name in names], dtype=np.bool_) for side in (CALIBRATION_NAMES, HELD_OUT_NAMES)
    )
    codes = [("source", golden.source_codes)] + ([("system", golden.system_codes)] if kind == "sources+systems" else [])
    for what, code in codes:
        shared = np.intersect1d(code[labelled[fitting]], code[labelled[held_out]])
        if shared.size:
            position = int(np.flatnonzero(code == shared[0])[0])
            name = golden.items[position].source_id if what == "source" else golden.items[position].system_id
            message = (
                f"The {what} {name[:80]!r} is on both sides of the split ({shared.size} are); move it to one side."
            )
            raise GoldenError(message, file=golden.name, column="split")
    return _divided(golden, aspect, labelled, fitting, held_out, kind=kind, seed=seed)


def _require_systems(golden: GoldenSet, labelled: IntArray) -> None:
    if not all(golden.items[position].system_id for position in labelled):
        raise GoldenError(
            "A split by systems needs a system_id for every labelled item; split by 'sources'.", file=golden.name
        )


def _divided(
    golden: GoldenSet,
    aspect: str,
    labelled: IntArray,
    fitting: NDArray[np.bool_],
    held_out: NDArray[np.bool_],
    *,
    kind: SplitKind,
    seed: int,
) -> Split:
    """The split of the `labelled` positions (n,) by two masks (n,); what is in neither is dropped.

    AspectError unless both sides hold at least 2 labels.
    """
    n_calibration, n_held_out = int(fitting.sum()), int(held_out.sum())
    if min(n_calibration, n_held_out) < 2:
        raise AspectError(
            f"Aspect {aspect!r} would have {n_calibration} label(s) to calibrate on and {n_held_out} held out; at "
            f"least 2 are needed on each side, and {ENOUGH} to calibrate on are recommended. Label more items.",
            file=golden.name,
        )
    dropped = len(labelled) - n_calibration - n_held_out
    return Split(_positions(labelled[fitting]), _positions(labelled[held_out]), kind, seed, dropped)


def _positions(array: IntArray) -> tuple[int, ...]:
    return tuple(int(position) for position in array)


def whole_sources(
    source_codes: IntArray, positions: IntArray, n_items: int, generator: np.random.Generator
) -> IntArray:
    """Of `positions`, ascending, all items of sources drawn at random until at least `n_items` are in.

    `source_codes` is (n_items,) over the whole golden set.  All of `positions` where they are too few.
    """
    codes = source_codes[positions]
    sources, sizes = np.unique(codes, return_counts=True)
    order = generator.permutation(sources.size)
    taken = sources[order[: int(np.searchsorted(np.cumsum(sizes[order]), n_items)) + 1]]
    return np.sort(positions[np.isin(codes, taken)])


# ── which texts a judge has seen ─────────────────────────────────────────────────────────────────────────────────


def text_digest(item: Item) -> str:
    """12 hex digits of what the item says."""
    texts = [_alike(part) for part in (item.source, item.context, item.target)]
    return content_digest("text", texts).partition(":")[2][:DIGITS]


def has_sources(golden: GoldenSet) -> bool:
    """Whether any item was made from a source."""
    return any(item.source for item in golden.items)


def source_digest(item: Item, *, by_source: bool = True) -> str:
    """12 hex digits of the text that makes an item's source the same source in another golden set.

    The source where there is one; else, or when two golden sets of which one has no sources are laid side by side
    (`by_source` False), the context and the target.
    """
    texts = [item.source] if by_source and item.source else [item.context, item.target]
    return content_digest("source", [_alike(text) for text in texts]).partition(":")[2][:DIGITS]


def _alike(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


A_LINE = 8


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Digests of the texts that chose or fitted a judge (`calibration`) and of those it was evaluated on.

    `only_mapped` are those of `calibration` whose labels came after its criteria: they fitted the map to the human
    scale and nothing else, so its scores owe them nothing.
    """

    calibration: tuple[str, ...]
    held_out: tuple[str, ...]
    only_mapped: tuple[str, ...] = ()

    @property
    def behind_scores(self) -> set[str]:
        """Of those whose labels chose or fitted what gives the scores."""
        return set(self.calibration) - set(self.only_mapped)

    @classmethod
    def of(cls, golden: GoldenSet, calibration: Iterable[int], held_out: Iterable[int]) -> KnownTexts:
        """Of the items at these positions; each digest once, sorted, so that their order gives nothing away."""
        return cls(*(_digests(golden, positions) for positions in (calibration, held_out)))

    def learnt_from(self, golden: GoldenSet, positions: Iterable[int]) -> KnownTexts:
        """With only the items at these positions behind the scores; other calibration items fitted the map alone."""
        behind = set(_digests(golden, positions))
        return replace(self, only_mapped=tuple(digest for digest in self.calibration if digest not in behind))

    def as_json(self) -> dict[str, str]:
        """As a judge file holds them: eight digests a line."""
        parts = {"calibration": self.calibration, "held_out": self.held_out}
        parts |= {"only_mapped": self.only_mapped} if self.only_mapped else {}
        return {
            name: "\n".join(" ".join(digests[k : k + A_LINE]) for k in range(0, len(digests), A_LINE))
            for name, digests in parts.items()
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> KnownTexts:
        return cls(*(tuple(body.get(name, "").split()) for name in ("calibration", "held_out", "only_mapped")))


def texts_behind(card: Mapping[str, Any]) -> list[KnownTexts]:
    """The texts that the judge of a judge file met, and those of the judges inside a fused one."""
    inner = (part["judge"]["texts"] for part in card.get("parts", ()) if part.get("judge"))
    return [KnownTexts.from_json(body) for body in (card["texts"], *inner)]


def calibration_digests(card: Mapping[str, Any]) -> frozenset[str]:
    """Digests of the texts whose labels chose or fitted a file's judge: there its alignment is optimistic."""
    return frozenset(digest for known in texts_behind(card) for digest in known.calibration)


def _digests(golden: GoldenSet, positions: Iterable[int]) -> tuple[str, ...]:
    """Each once, sorted."""
    return tuple(sorted({text_digest(golden.items[k]) for k in positions}))


# ── what a newer golden set adds ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Grown:
    """`known` and `new` are source_ids of the newer set, in order; `n_gone` sources of the older one are not in it.

    `n_new_items` texts are not in the older set.  `labels_added` is, by aspect, how many more items the newer set has
    labels on (negative: fewer), aspects without a difference left out.
    """

    known: tuple[str, ...]
    new: tuple[str, ...]
    n_gone: int
    n_new_items: int
    labels_added: dict[str, int]

    def words(self, older: str = "the older one") -> str:
        """One sentence: what it adds to the older set of that name."""
        if not self.known:
            return f"It shares no source with {older}."
        added = [counted(n, "new source") for n in (len(self.new),) if n]
        added += [counted(n, "new text") for n in (self.n_new_items,) if n]
        more = sum(n for n in self.labels_added.values() if n > 0)
        fewer = -sum(n for n in self.labels_added.values() if n < 0)
        added += [counted(more, "more label")] if more else []
        kept = f"{counted(len(self.known), 'source')} known from {older}"
        lost = [counted(self.n_gone, "source") + " left out"] if self.n_gone else []
        lost += [counted(fewer, "label") + " fewer"] if fewer else []
        head = f"It adds {_listed(added)} to {kept}" if added else f"It has the same texts: {kept}"
        return f"{head}{'; ' + _listed(lost) if lost else ''}."


def grown(old: GoldenSet, new: GoldenSet) -> Grown:
    """What `new` adds to `old`.  A source is known when one of its texts is (`source_digest`)."""
    by_source = has_sources(old) and has_sources(new)
    before, now = _sources(old, by_source=by_source), _sources(new, by_source=by_source)
    texts_before, texts_now = (set().union(*sources.values()) for sources in (before, now))
    known = {name for name, texts in now.items() if texts & texts_before}
    items_before = {text_digest(item) for item in old.items}
    counts = {
        aspect: (new.aspects[aspect].n_labelled if aspect in new.aspects else 0)
        - (old.aspects[aspect].n_labelled if aspect in old.aspects else 0)
        for aspect in (*new.aspects, *(name for name in old.aspects if name not in new.aspects))
    }
    return Grown(
        known=tuple(name for name in now if name in known),
        new=tuple(name for name in now if name not in known),
        n_gone=sum(not texts & texts_now for texts in before.values()),
        n_new_items=len({text_digest(item) for item in new.items} - items_before),
        labels_added={aspect: n for aspect, n in counts.items() if n},
    )


def _sources(golden: GoldenSet, *, by_source: bool) -> dict[str, set[str]]:
    """source_id → digests of its texts, in order of first appearance."""
    texts: dict[str, set[str]] = {}
    for item in golden.items:
        texts.setdefault(item.source_id, set()).add(source_digest(item, by_source=by_source))
    return texts


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
