"""Split labelled items into a calibration and a held-out set, and recognise texts that a judge has seen.

The two sets never share a source, and with "sources+systems" no system either. Split before drafting criteria, because
results on the items used for choosing are optimistic.

A judge file stores digests of the texts that the judge was calibrated or evaluated on. A digest depends on target,
source and context, not on ids, labels or ratings. Only line ends (CR LF, CR) and Unicode forms (NFC) are normalised
first. A digest is 12 hex digits (48 bits) of a SHA-256. With 1,600 known texts and 100,000 others, a false match occurs
in 1 of 1.8 million files. A digest does not reveal its text, but anyone who has a text can check whether its digest is
in the file.

Recommended numbers of labels count calibration labels only. With half of the sources held out, about twice as many
labels are needed. The recommendations come from 34 runs of the offline judge on public sets, with drafts and
refinements only (`fit_strengths=False`). The runs are compared by their mean held-out alignment with raters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from core.errors import AspectError, GoldenError, UsageError
from core.records import AspectLabels, GoldenSet, IntArray, Item, Scale, Split, Task, content_digest
from core.wording import counted

SplitKind = Literal["sources", "sources+systems"]
_Mask = NDArray[np.bool_]
CALIBRATION_NAMES = frozenset("calibration calib cal train training dev development validation valid val".split())
HELD_OUT_NAMES = frozenset("held_out held-out heldout test testing eval evaluation".split())
DIGITS = 12

LEAST = 8
"""Fewest calibration labels; results with fewer are not distinguishable from chance."""
TO_STACK = 50
"""Fewest labels to learn the weights of a fusion."""
ENOUGH = 100
"""Recommended number of calibration labels; with fewer, refinements fitted their noise in measured runs."""
ENOUGH_IN_ALL = 200
"""Recommended labels in total, with half of the sources held out."""


def _labels_of(golden: GoldenSet, aspect: str) -> AspectLabels:
    if aspect not in golden.aspects:
        names = ", ".join(golden.aspects) or "none"
        message = f"The golden set has no aspect {aspect[:100]!r}. Its aspects are: {names}."
        raise AspectError(message, file=golden.name)
    return golden.aspects[aspect]


def task_of(golden: GoldenSet, aspect: str, definition: str = "", scale: Scale | None = None) -> Task:
    """Return the task of rating `aspect`, on the scale of its labels unless `scale` is given.

    Raises AspectError, which lists the aspects of the golden set, for an unknown aspect.
    """
    return Task(aspect, golden.kind, scale or _labels_of(golden, aspect).scale, definition)


def usable_aspect(golden: GoldenSet, aspect: str) -> AspectLabels:
    """Return the labels of `aspect`.

    Raises AspectError if the aspect is absent, if it has fewer than 2 labels, or if all its labels are equal.
    """
    labels = _labels_of(golden, aspect)
    values = {value for value in labels.values if value is not None}
    if labels.n_labelled < 2:
        raise AspectError(
            f"Aspect {aspect!r} needs at least 2 labels ({ENOUGH_IN_ALL} recommended); it has {labels.n_labelled}. "
            "Label more items.",
            file=golden.name,
        )
    if len(values) == 1:
        raise AspectError(
            f"All {labels.n_labelled} labels for {aspect!r} are {values.pop():g}, so Concord can't measure agreement. "
            "Choose another aspect, or label items that differ in quality.",
            file=golden.name,
        )
    return labels


# ── how many labels are enough ───────────────────────────────────────────────────────────────────────────────────


def few_labels(n: int, held_out: int = ENOUGH) -> str:
    """Return a warning if `n` calibration labels or `held_out` held-out labels are too few; "" if both reach 100."""
    # In 34 measured runs with drafted criteria, calibration did worse than the baseline in 44 % of runs with 50 labels,
    # and in 26 % with 100. With 20 labels its alignment was 0.495 (0.520 without refining), the baseline's 0.500.
    if n >= ENOUGH:
        return "" if held_out >= ENOUGH else f"The interval is wide because there are only {held_out} held-out labels."
    if held_out < ENOUGH:
        return f"Only {n} calibration labels and {held_out} held-out labels; we recommend {ENOUGH} of each."
    return f"Only {n} calibration labels; we recommend {ENOUGH}. Results may be no better than the baseline."


def too_few_to_stack(n: int) -> str:
    """Return a warning if `n` labels are too few to learn weights; "" if they are enough."""
    if n >= TO_STACK:
        return ""
    return f"Only {n} labels are left for fitting. Weights learnt from fewer than {TO_STACK} labels overfit"


# ── the split ────────────────────────────────────────────────────────────────────────────────────────────────────


def split_sources(
    golden: GoldenSet,
    *,
    aspect: str,
    fraction: float = 0.5,
    seed: int = 0,
    kind: SplitKind = "sources",
    given: bool = False,
) -> Split:
    """Split the items labelled on `aspect` into calibration and held-out. The same seed gives the same split.

    `Split.dropped` counts the labelled items that are in neither set.

    Args:
        fraction: Share of the sources that goes to calibration, above 0 and below 1.
        kind: "sources+systems" also divides the systems in half, so that the sets share neither sources nor systems.
        given: Use the sets in the file's ``split`` column instead of drawing them.

    Raises:
        AspectError: The aspect or one of the sets cannot be used.
        GoldenError: There are fewer than 2 sources or systems, or the ``split`` column is unusable.
        UsageError: `fraction` is out of range.
    """
    if given:
        usable_aspect(golden, aspect)
        return _given_split(golden, aspect, kind, seed)
    return _drawn_split(golden, aspect, fraction, seed, kind=kind, sources={}, systems={})


def grown_split(
    split: Split, old: GoldenSet, new: GoldenSet, *, aspect: str, fraction: float = 0.5, seed: int | None = None
) -> Split:
    """Extend the `split` of `old` to `new`: known sources stay in their set, and only new sources are divided.

    A source is recognised by its text, whatever its id. With "sources+systems", known systems stay in their set too.

    Args:
        split: The split to extend.
        old: The golden set of `split`.
        new: The golden set with additional items.
        fraction: Share of the new sources that goes to calibration. A single new source goes there with this
            probability.
        seed: Seed of the random draw; None means the seed of `split`.

    Raises:
        GoldenError: A source's text is in both sets, and its id does not show which set it belongs to.
    """
    systems = {old.items[k].system_id: True for k in split.calibration}
    systems |= {old.items[k].system_id: False for k in split.held_out}
    seed = split.seed if seed is None else seed
    sources = _known_sides(split, old, new)
    return _drawn_split(new, aspect, fraction, seed, kind=split.kind, sources=sources, systems=systems)


def _drawn_split(
    golden: GoldenSet,
    aspect: str,
    fraction: float,
    seed: int,
    *,
    kind: SplitKind,
    sources: Mapping[str, bool],
    systems: Mapping[str, bool],
) -> Split:
    """Draw a split in which known `sources` and `systems` stay in their set."""
    if not 0 < fraction < 1:
        raise UsageError(f"The calibration fraction must be between 0 and 1; got {fraction:g}.")
    usable_aspect(golden, aspect)
    labelled, rng = _labelled(golden, aspect), np.random.default_rng(seed)
    items = [golden.items[k] for k in labelled]

    def side(known: list[bool | None], codes: IntArray, share: float, what: str) -> _Mask:
        chosen = np.array([bool(one) for one in known], dtype=np.bool_)
        fresh = np.flatnonzero([one is None for one in known])
        if fresh.size < len(known) and np.unique(codes[fresh]).size == 1:  # one alone falls to either side
            chosen[fresh] = rng.random() < share
        elif fresh.size:
            chosen[fresh] = _share(codes[fresh], share, rng, f"the {what} labelled on {aspect!r}", golden.name)
        return chosen

    fitting = side([sources.get(item.source_id) for item in items], golden.source_codes[labelled], fraction, "sources")
    seen = fitting
    if kind == "sources+systems":
        if not all(item.system_id for item in items):
            message = (
                "To split by systems, every labelled item needs a system_id. Add the missing ids, or split by "
                "'sources'."
            )
            raise GoldenError(message, file=golden.name)
        seen = side([systems.get(item.system_id) for item in items], golden.system_codes[labelled], 0.5, "systems")
    return _divided(golden, aspect, fitting & seen, ~fitting & ~seen, kind=kind, seed=seed)


def _labelled(golden: GoldenSet, aspect: str) -> IntArray:
    """Return the positions (n,) of the items with a label."""
    return np.flatnonzero(np.isfinite(golden.labels(aspect)))


def _known_sides(split: Split, old: GoldenSet, new: GoldenSet) -> dict[str, bool]:
    """Map each source_id in `new` with a known text to whether it belongs to calibration in `old`."""
    by_source = has_sources(old) and has_sources(new)
    known: dict[tuple[str, str], set[bool]] = {}  # by text, or by id and text if both sets have the text
    for positions, calibrates in ((split.calibration, True), (split.held_out, False)):
        for item in (old.items[k] for k in positions):
            digest = source_digest(item, by_source=by_source)
            for source_id in ("", item.source_id):
                known.setdefault((source_id, digest), set()).add(calibrates)
    found: dict[str, set[bool]] = {}
    for item in new.items:
        digest = source_digest(item, by_source=by_source)
        sides = known.get(("", digest), set())
        own = known.get((item.source_id, digest), sides) if len(sides) > 1 else sides
        found.setdefault(item.source_id, set()).update(own)
    both = [name for name, sides in found.items() if len(sides) > 1]
    if both:
        raise GoldenError(
            f"The text of source {both[0][:80]!r} is in both the calibration and the held-out set of the earlier split "
            f"({counted(len(both), 'such source')}). Remove the source, or restore its earlier source_id.",
            file=new.name,
        )
    return {name: sides.pop() for name, sides in found.items() if sides}


def calibration_labels(golden: GoldenSet, aspect: str) -> int | None:
    """Return the number of calibration labels of `aspect` in the usual split; None if no split is possible."""
    try:
        return len(split_sources(golden, aspect=aspect).calibration)
    except (AspectError, GoldenError):
        return None


def inner_fold(
    positions: Sequence[int], source_codes: IntArray, fraction: float, seed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split `positions` by source into a fitting set and a validation set; return the positions in each, ascending.

    About `fraction` of the sources go to the fitting set. `source_codes` (n_items,) is `GoldenSet.source_codes`.

    Raises:
        GoldenError: There are fewer than 2 sources.
        UsageError: `fraction` is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction of sources used for fitting must be between 0 and 1; got {fraction:g}.")
    chosen = np.asarray(sorted(positions), dtype=np.intp)
    fitting = _share(source_codes[chosen], fraction, np.random.default_rng(seed), "the calibration sources")
    return tuple(chosen[fitting].tolist()), tuple(chosen[~fitting].tolist())


def _share(codes: IntArray, fraction: float, rng: Generator, what: str, file: str | None = None) -> _Mask:
    """Draw a `fraction` of the distinct codes, at least 1 in and 1 out; return the mask (n,) of their entries."""
    distinct = np.unique(codes)
    if distinct.size < 2:
        raise GoldenError(f"Can't split {what}: at least 2 are required; got {distinct.size}.", file=file)
    n = min(max(round(fraction * distinct.size), 1), distinct.size - 1)
    return np.isin(codes, rng.permutation(distinct)[:n])


def _given_split(golden: GoldenSet, aspect: str, kind: SplitKind, seed: int) -> Split:
    """Split by the split column of the file; items with any other value are dropped."""
    if not golden.given_split:
        raise GoldenError(
            "The file has no split column. Add a split column with the values calibration and held_out.",
            file=golden.name,
            column="split",
        )
    labelled = _labelled(golden, aspect)
    names = [golden.given_split[k].strip().lower() for k in labelled]
    fitting, held_out = (np.array([name in side for name in names]) for side in (CALIBRATION_NAMES, HELD_OUT_NAMES))
    for what in ("source", "system") if kind == "sources+systems" else ("source",):
        ids = np.array([getattr(golden.items[k], f"{what}_id") for k in labelled])
        others = set(ids[held_out].tolist())
        if shared := [name for name in dict.fromkeys(ids[fitting].tolist()) if name in others]:
            message = (
                f"The {what} {shared[0][:80]!r} is in both the calibration set and the held-out set "
                f"({counted(len(shared), f'such {what}')}). Move it to one of them."
            )
            raise GoldenError(message, file=golden.name, column="split")
    return _divided(golden, aspect, fitting, held_out, kind=kind, seed=seed)


def _divided(golden: GoldenSet, aspect: str, fitting: _Mask, held_out: _Mask, *, kind: SplitKind, seed: int) -> Split:
    """Split the labelled positions (n,) by two masks (n,); items in neither are dropped.

    AspectError unless both sets have at least 2 labels.
    """
    n_calibration, n_held_out = int(fitting.sum()), int(held_out.sum())
    if min(n_calibration, n_held_out) < 2:
        raise AspectError(
            f"After the split, aspect {aspect!r} has {counted(n_calibration, 'calibration label')} and "
            f"{counted(n_held_out, 'held-out label')}. Each set needs at least 2 labels; we recommend {ENOUGH} for "
            "calibration. Label more items.",
            file=golden.name,
        )
    labelled = _labelled(golden, aspect)
    dropped = len(labelled) - n_calibration - n_held_out
    return Split(tuple(labelled[fitting].tolist()), tuple(labelled[held_out].tolist()), kind, seed, dropped)


def whole_sources(
    source_codes: IntArray, positions: IntArray, n_items: int, generator: np.random.Generator
) -> IntArray:
    """Draw whole sources at random until their items include at least `n_items` of `positions`.

    Returns the drawn positions, ascending. If there are too few, all of `positions` are returned. `source_codes` has
    one code per item of the whole golden set.
    """
    codes = source_codes[positions]
    sources, sizes = np.unique(codes, return_counts=True)
    order = generator.permutation(sources.size)
    taken = sources[order[: int(np.searchsorted(np.cumsum(sizes[order]), n_items)) + 1]]
    return np.sort(positions[np.isin(codes, taken)])


# ── which texts a judge has seen ─────────────────────────────────────────────────────────────────────────────────


def text_digest(item: Item) -> str:
    """Return 12 hex digits that identify the item's text."""
    texts = [_alike(part) for part in (item.source, item.context, item.target)]
    return content_digest("text", texts).partition(":")[2][:DIGITS]


def has_sources(golden: GoldenSet) -> bool:
    """Return whether at least one item has a source text."""
    return any(item.source for item in golden.items)


def source_digest(item: Item, *, by_source: bool = True) -> str:
    """Return 12 hex digits that identify an item's source in any golden set.

    The digits are a digest of the source text. Without a source text, context and target are used instead. Set
    `by_source` to False to ignore the source text, for a comparison with a golden set that has no sources.
    """
    texts = [item.source] if by_source and item.source else [item.context, item.target]
    return content_digest("source", [_alike(text) for text in texts]).partition(":")[2][:DIGITS]


def _alike(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


A_LINE = 8


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Digests of the texts whose labels were used for a judge.

    Attributes:
        calibration: Texts whose labels were used to choose or fit the judge.
        held_out: Texts whose labels were used to evaluate the judge.
        only_mapped: Texts in `calibration` that were labelled after the criteria were chosen. Their labels were used
            only to fit the map to the human scale, so the scores do not depend on them.
    """

    calibration: tuple[str, ...]
    held_out: tuple[str, ...]
    only_mapped: tuple[str, ...] = ()

    @property
    def behind_scores(self) -> set[str]:
        """Digests of the texts whose labels were used to choose criteria or to fit the scores."""
        return set(self.calibration) - set(self.only_mapped)

    @classmethod
    def of(cls, golden: GoldenSet, calibration: Iterable[int], held_out: Iterable[int]) -> KnownTexts:
        """Return digests of the items at these positions, sorted so that their order reveals nothing."""
        return cls(*(_digests(golden, positions) for positions in (calibration, held_out)))

    def learnt_from(self, golden: GoldenSet, positions: Iterable[int]) -> KnownTexts:
        """Return a copy that marks calibration items as `only_mapped`, except the items at `positions`."""
        behind = set(_digests(golden, positions))
        return replace(self, only_mapped=tuple(digest for digest in self.calibration if digest not in behind))

    def as_json(self) -> dict[str, str]:
        """Return the digests in the form of a judge file, with eight digests per line."""
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
    """Return the texts that the judge in a judge file has seen, including the texts seen by parts of a fused judge."""
    inner = (part["judge"]["texts"] for part in card.get("parts", ()) if part.get("judge"))
    return [KnownTexts.from_json(body) for body in (card["texts"], *inner)]


def calibration_digests(card: Mapping[str, Any]) -> frozenset[str]:
    """Return digests of the texts whose labels were used to choose or fit the judge in a judge file.

    The judge's alignment on these texts is optimistic.
    """
    return frozenset(digest for known in texts_behind(card) for digest in known.calibration)


def _digests(golden: GoldenSet, positions: Iterable[int]) -> tuple[str, ...]:
    """List the distinct digests of the texts at `positions`, sorted."""
    return tuple(sorted({text_digest(golden.items[k]) for k in positions}))
