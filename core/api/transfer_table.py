"""RepEval fitted on some golden sets and applied to others: the form of 003's Table 1, for the model at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.comparison import usual_level
from core.comparison.published import likely_dataset, published_for
from core.data.split import usable_aspect
from core.errors import ConcordError, UsageError
from core.files import write_json, write_text
from core.records import Alignment, GoldenSet, Level, Statistic
from core.repeval import (
    METHODS,
    AspectStates,
    Extraction,
    ModelSpec,
    RepEvalSettings,
    States,
    TextMode,
    extract,
    present_parts,
    run,
    transfer,
    usual_texts,
)
from core.settings import Settings
from core.stats.claims import number, range_words

PAPER = "003"
SAME_ASPECT = {"naturalness": "fluency"}
"""Aspects that 003 calls by another name (its appendix C.1)."""
PRINTED = {
    "paper-pca:20": "RepEval PCA (20 pairs)",
    "paper-pca:5": "RepEval PCA (5 pairs)",
    "paper-svm:100": "RepEval SVM",
}
TAUGHT_THERE = {
    "ASSET": "fetch asset, and name it with --train-on",
    "GCDC": "its holders give it out on request; name it with --train-on",
}
PRINTED_THERE = "003 (Mistral-7b, prompt, from ASSET or GCDC)"
VARIANTS = ("paper-pca:20", "paper-pca:5", "paper-svm:100", "ridge")


@dataclass(frozen=True)
class Rated:
    """A golden set with the aspect that is meant of it."""

    golden: GoldenSet
    aspect: str

    @property
    def name(self) -> str:
        return f"{self.golden.name} {self.aspect}"


@dataclass(frozen=True)
class TableCell:
    """A score fitted by `variant` on `trained_on`, applied to `applied_to`: its alignment, or the `reason` for none.

    Where both are the same it is fitted on a part of the sources and evaluated on others, so `n` is smaller.
    """

    variant: str
    trained_on: str
    applied_to: str
    alignment: Alignment | None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        own = None if self.alignment is None else self.alignment.as_json()
        return vars(self) | {"alignment": own}


@dataclass(frozen=True)
class TransferTable:
    """All cells; `printed` maps (what it is applied to, variant) to the value that 003 prints there."""

    model: str
    cells: tuple[TableCell, ...]
    printed: Mapping[tuple[str, str], float]

    def as_json(self) -> dict[str, Any]:
        printed = [{"applied_to": row, "variant": name, "value": value} for (row, name), value in self.printed.items()]
        cells = [cell.as_json() for cell in self.cells]
        return {"model": self.model, "cells": cells, "printed": printed, "missing": list(self.missing)}

    @property
    def missing(self) -> tuple[str, ...]:
        """What of 003's Table 1 is not here, and what would bring it."""
        taught = {cell.trained_on.lower() for cell in self.cells}
        model = f"003 reads Mistral-7b by a prompt; here it is {self.model}."
        lacks = [] if "mistral" in self.model.lower() else [model]
        lacks += [
            f"003 trains on {name}, too: {how}."
            for name, how in TAUGHT_THERE.items()
            if not any(name.lower() in known for known in taught)
        ]
        return (*lacks, "003's other rows come of fuse --with gptscore:MODEL,prompted:MODEL,bartscore:MODEL.")

    def markdown(self) -> str:
        """A table for each variant: applied to (rows), trained on (columns), what 003 prints last."""
        return "\n\n".join(self._of_variant(name) for name in dict.fromkeys(cell.variant for cell in self.cells))

    def save(self, folder: Path) -> dict[str, Any]:
        """Write `table.md` and `summary.json` into `folder`; returns the last."""
        body = self.as_json() | {"out": str(folder)}
        write_text(folder / "table.md", self.markdown() + "\n")
        write_json(folder / "summary.json", body)
        return body

    def _of_variant(self, variant: str) -> str:
        own = {(cell.applied_to, cell.trained_on): cell for cell in self.cells if cell.variant == variant}
        rows, columns = (list(dict.fromkeys(side)) for side in zip(*own, strict=True))
        head = [f"{variant}, {self.model}: applied to", *(f"from {name}" for name in columns), PRINTED_THERE]
        lines = [head, ["---"] * len(head)]
        for row in rows:
            value = self.printed.get((row, variant))
            cells = [_words(own[row, column], row == column) for column in columns]
            lines.append([row, *cells, "—" if value is None else f"{value:.3f}"])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _words(cell: TableCell, own: bool) -> str:
    alignment = cell.alignment
    if alignment is None or alignment.value is None:
        return "—"
    ends = f" {range_words(alignment.interval)}" if alignment.interval else ""
    return f"{number(alignment.value, 3)}{ends}, n {alignment.n}{' (own)' if own else ''}"


def transfer_table(
    sets: Sequence[Rated],
    train_on: Sequence[Rated] = (),
    *,
    variants: Sequence[str] = VARIANTS,
    model: str = "minilm",
    revision: str | None = None,
    template: str = "",
    texts: TextMode | None = None,
    statistic: Statistic = "spearman",
    level: Level = "dataset",
    bootstrap: int = 1000,
    seed: int = 0,
    on_cell: Callable[[TableCell], None] = lambda cell: None,
) -> TransferTable:
    """Every score of `train_on` (by default of every set) applied to each of `sets`.

    All sets are read alike: `texts` None compares texts, with the parts that all sets have, where MiniLM reads without
    a template.  A variant is ``METHOD`` or ``METHOD:PAIRS``.  Spearman at dataset level is what 003 prints.  A cell
    that cannot be had says why.  UsageError for fewer than two sets in all, or an unknown variant; AspectError for
    labels that cannot rank anything.
    """
    teachers = list(train_on or sets)
    if len({rated.name for rated in (*sets, *teachers)}) < 2:
        raise UsageError("A transfer table needs two golden sets at least: name more, or some with --train-on.")
    for rated in (*sets, *teachers):
        usable_aspect(rated.golden, rated.aspect)
    settings = {
        name: RepEvalSettings(
            **_variant(name), statistic=statistic, level=level, seed=seed, resamples=bootstrap, random_vectors=0
        )
        for name in variants
    }
    parts = present_parts(*(rated.golden.items for rated in (*sets, *teachers)))
    reads = Extraction(template, texts=texts or usual_texts(model, template), parts=parts)
    reader = _Reader(ModelSpec(model, revision), reads, Settings.from_environment())
    cells = []
    for cell in _cells(sets, teachers, settings, reader):
        on_cell(cell)
        cells.append(cell)
    return TransferTable(model, tuple(cells), dict(_printed(sets, variants)))


def _variant(name: str) -> dict[str, Any]:
    """``paper-pca:20`` → its method and pairs."""
    method, colon, pairs = name.partition(":")
    if method not in METHODS or (colon and not pairs.isdecimal()):
        raise UsageError(f"Unknown variant {name!r}: take METHOD or METHOD:PAIRS with one of {', '.join(METHODS)}.")
    plain = RepEvalSettings(method=method)
    return {"method": method, "pairs": replace(plain.pair_rule, n=int(pairs)) if colon else None}


class _Reader:
    """States of golden sets, read once for each criterion that stands in the template."""

    def __init__(self, spec: ModelSpec, reads: Extraction, here: Settings) -> None:
        self._spec, self._reads, self._here = spec, reads, here
        self._states: dict[tuple[str, str], States] = {}

    def read(self, rated: Rated, criterion: str) -> AspectStates:
        """`criterion` is the aspect of the set that is applied to, for both sides are read alike."""
        extraction = replace(self._reads, criterion=criterion)
        key = (rated.golden.digest, criterion if extraction.asks_criterion else "")
        if key not in self._states:
            self._states[key] = extract(
                rated.golden,
                self._spec,
                extraction,
                self._here.home,
                ray=self._here.ray,
                code=self._here.remote_code,
            )
        return AspectStates(rated.golden, rated.aspect, self._states[key])


def _cells(
    sets: Sequence[Rated], teachers: Sequence[Rated], settings: Mapping[str, RepEvalSettings], reader: _Reader
) -> Iterator[TableCell]:
    for row in sets:
        for teacher in teachers:
            here, there = reader.read(row, row.aspect), reader.read(teacher, row.aspect)
            for name, how in settings.items():
                try:
                    yield TableCell(name, teacher.name, row.name, _alignment(how, here, there))
                except ConcordError as error:
                    yield TableCell(name, teacher.name, row.name, None, str(error))


def _alignment(how: RepEvalSettings, here: AspectStates, there: AspectStates) -> Alignment:
    if here.golden.digest != there.golden.digest:
        train_level = usual_level(there.golden, there.aspect)
        return transfer(here, there, how, train_level, compare=False).transferred
    if here.aspect != there.aspect:
        raise UsageError("another aspect of the same texts")
    return run(here.golden, here.aspect, here.states, how).test


def _printed(sets: Sequence[Rated], variants: Sequence[str]) -> Iterator[tuple[tuple[str, str], float]]:
    for row in sets:
        dataset = likely_dataset(row.golden.name)
        aspect = SAME_ASPECT.get(row.aspect, row.aspect)
        numbers = () if dataset is None else published_for(dataset, aspect)
        values = {number.judge: number.value for number in numbers if number.paper == PAPER}
        for name in variants:
            if PRINTED.get(name) in values:
                yield (row.name, name), values[PRINTED[name]]
