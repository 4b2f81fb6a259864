"""Numbers that the four papers print, as a reference beside one's own: the content of `published.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from core.records import Measure


@dataclass(frozen=True, slots=True)
class Published:
    """One printed value: what `judge` reached on `aspect` of `dataset` by `measure`, in `table` of `paper`."""

    dataset: str
    aspect: str
    measure: Measure
    judge: str
    value: float
    paper: str
    table: str
    note: str = ""

    @property
    def source(self) -> str:
        """E.g. "AutoCalibrate, Table 2"."""
        return f"{_file()['papers'][self.paper]}, {self.table}"


@cache
def _file() -> Mapping[str, Any]:
    import yaml

    body: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("published.yaml").read_text("utf-8"))
    return body


@cache
def published_numbers() -> tuple[Published, ...]:
    """Every value kept, in the order of papers and tables."""
    return tuple(number for table in _file()["tables"] for number in _numbers(table))


def _numbers(table: Mapping[str, Any]) -> Iterator[Published]:
    measures = [Measure(*words.split()) for words in table["measures"]]
    for dataset, aspect, measure, judge, value in _cells(table, measures):
        if value is not None:
            note = " ".join(filter(None, (table.get("notes", {}).get(judge), table.get("note"))))
            yield Published(dataset, aspect, measure, judge, value, table["paper"], table["table"], note)


def _cells(
    table: Mapping[str, Any], measures: Sequence[Measure]
) -> Iterator[tuple[str, str, Measure, str, float | None]]:
    if "judges" in table:  # rows are data sets and aspects
        for row in table["rows"]:
            for judge, value in zip(table["judges"], row["values"], strict=True):
                yield row["dataset"], row["aspect"], measures[0], judge, value
        return
    columns = list(product(table["aspects"], measures))
    for judge, values in table["rows"].items():
        for (aspect, measure), value in zip(columns, values, strict=True):
            yield table["dataset"], aspect, measure, judge, value


def published_datasets() -> tuple[str, ...]:
    """Names of the data sets that some value is about."""
    return tuple(dict.fromkeys(number.dataset for number in published_numbers()))


def published_aspects(dataset: str) -> tuple[str, ...]:
    """Aspects of `dataset` that some value is about."""
    return tuple(dict.fromkeys(number.aspect for number in published_numbers() if number.dataset == dataset))


def likely_dataset(golden_name: str) -> str | None:
    """The published data set that a golden set of this name seems to hold; a person confirms it."""
    name = golden_name.lower()
    return next((dataset for dataset, pattern in _file()["names"].items() if re.search(pattern, name)), None)


def published_for(dataset: str, aspect: str) -> tuple[Published, ...]:
    """All values about one aspect of one data set, in the order of papers and tables."""
    return tuple(number for number in published_numbers() if (number.dataset, number.aspect) == (dataset, aspect))


def departure(number: Published, measure: Measure) -> str:
    """How the value's measure differs from `measure`; empty where it is the same."""
    own, differences = number.measure, []
    if own.statistic != measure.statistic:
        differences.append(f"{own.statistic.capitalize()}, not {measure.statistic.capitalize()}")
    if own.level != measure.level:
        differences.append(f"{own.level} level, not {measure.level}")
    return "; ".join(differences)


def published_beside(name: str, numbers: Sequence[Published]) -> Published | None:
    """The number printed for a judge of this name, by its letters and digits ("rouge1" is ROUGE-1), if there is one."""
    wanted = _letters(name)
    return next((number for number in numbers if wanted and _letters(number.judge) == wanted), None)


def _letters(name: str) -> str:
    """Lower-case letters and digits; what stands in brackets and a closing F (F1 of ROUGE) are left out."""
    bare = re.sub(r"\(.*?\)", "", name.lower())
    letters = "".join(re.findall(r"[a-z0-9]+", bare.replace("metric_", "")))
    return re.sub(r"^(rouge[12l])f1?$", r"\1", letters)
