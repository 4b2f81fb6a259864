"""Numbers that the four papers print, as a reference beside one's own: facts with table, statistic and level.

Only what the tables state, in their rounding, with the corrections of METHODS §1: where a row stands under the wrong
name the value is listed under its true one and `note` says so; values that no table prints are marked as recomputed.
Averages over aspects are left out.

Sources: 001 Liu et al. 2023 (AutoCalibrate), 002 Chiang and Lee 2023 (A Closer Look), 003 RepEval, 004 Fusion-Eval.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from core.records import Level, Statistic

PAPERS = {"001": "AutoCalibrate", "002": "A Closer Look", "003": "RepEval", "004": "Fusion-Eval"}


@dataclass(frozen=True, slots=True)
class Published:
    """One printed value: what `judge` reached on `aspect` of `dataset`, measured with `statistic` at `level`."""

    dataset: str
    aspect: str
    statistic: Statistic
    level: Level
    judge: str
    value: float
    paper: str
    table: str
    note: str = ""

    @property
    def source(self) -> str:
        """E.g. "AutoCalibrate, Table 2"."""
        return f"{PAPERS[self.paper]}, {self.table}"


class _Column(NamedTuple):
    """What a column of a table is about."""

    aspect: str
    statistic: Statistic
    level: Level


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of text: ``judge | values``, "-" where nothing is printed; a third part is a note."""

    dataset: str
    paper: str
    table: str
    columns: tuple[_Column, ...]
    rows: str
    note: str = ""

    def records(self) -> list[Published]:
        told = []
        for line in self.rows.strip().splitlines():
            judge, values, *notes = (part.strip() for part in line.split("|"))
            note = " ".join([*notes, self.note]).strip()
            told += [
                Published(self.dataset, *column, judge, float(value), self.paper, self.table, note)
                for column, value in zip(self.columns, values.split(), strict=True)
                if value != "-"
            ]
        return told


def _columns(aspects: str, *measures: tuple[Statistic, Level]) -> tuple[_Column, ...]:
    return tuple(_Column(aspect, *measure) for aspect in aspects.split() for measure in measures)


_SAMPLE: tuple[tuple[Statistic, Level], ...] = (("spearman", "sample"), ("kendall", "sample"))
_DATASET: tuple[tuple[Statistic, Level], ...] = (("spearman", "dataset"), ("kendall", "dataset"))
_SYSTEM: tuple[tuple[Statistic, Level], ...] = (("spearman", "system"), ("kendall", "system"))
_QAGS: tuple[tuple[Statistic, Level], ...] = (("pearson", "dataset"), *_DATASET)
_CLOSER: tuple[tuple[Statistic, Level], ...] = (("pearson", "dataset"), ("kendall", "sample"))
_CLOSER_SAMPLE: tuple[tuple[Statistic, Level], ...] = (("pearson", "sample"), ("kendall", "sample"))
_DIALOGUE = "naturalness coherence engagingness groundedness"
_SUMMARY = "coherence consistency fluency relevance"

_AUTOCALIBRATE = (
    _Table(
        "Newsroom",
        "001",
        "Table 1",
        _columns("coherence relevance informativeness fluency", *_SAMPLE),
        """
        ROUGE-1 | .095 .076 .147 .112 .130 .099 .104 .082
        ROUGE-2 | .026 .009 .091 .065 .079 .052 .048 .032
        ROUGE-L | .064 .051 .106 .083 .089 .064 .072 .061
        BERTScore | .147 .116 .162 .126 .130 .105 .171 .128
        MoverScore | .161 .127 .195 .157 .188 .151 .120 .086
        PRISM | .573 .478 .553 .460 .561 .472 .532 .443
        BARTScore (CNN) | .653 .547 .567 .478 .616 .510 .640 .540
        ChatGPT (direct assessment) | .469 .405 .461 .392 .578 .498 .507 .427
        ChatGPT (stars) | .428 .375 .402 .348 .557 .487 .451 .385
        GPT-4 | .557 .498 .574 .511 .581 .521 .601 .535
        AutoCalibrate (GPT-4) | .602 .540 .656 .585 .654 .590 .640 .575
        """,
    ),
    _Table(
        "SummEval",
        "001",
        "Table 2",
        _columns(_SUMMARY, *_SAMPLE),
        """
        ROUGE-1 | .167 .126 .160 .130 .115 .094 .326 .252
        ROUGE-2 | .184 .139 .187 .155 .159 .128 .290 .219
        ROUGE-L | .128 .099 .115 .092 .105 .084 .311 .237
        BERTScore | .284 .211 .110 .090 .193 .158 .312 .243
        MoverScore | .159 .118 .157 .127 .129 .105 .318 .244
        PRISM | .249 .196 .212 .163 .345 .285 .254 .205
        CTC (consistency) | .223 .172 .415 .345 .335 .276 .166 .124
        CTC (relevance) | .402 .310 .366 .301 .299 .245 .428 .336
        BARTScore (CNN) | .448 .342 .382 .315 .356 .292 .356 .273
        UniEval (multi-task) | .495 .374 .435 .365 .419 .346 .424 .327
        UniEval (continual) | .575 .442 .446 .371 .449 .371 .426 .325
        ChatGPT (direct assessment) | .451 .383 .432 .399 .380 .351 .439 .379
        G-Eval-3.5 | .440 .335 .386 .318 .424 .347 .385 .293
        G-Eval-4 | .582 .457 .507 .425 .455 .378 .547 .433
        GPT-4 | .535 .464 .466 .432 .440 .413 .532 .465
        AutoCalibrate (GPT-4) | .570 .493 .500 .467 .487 .452 .560 .483
        """,
    ),
    *(
        _Table(dataset, "001", "Table 3", _columns("informativeness naturalness", *_DATASET), rows)
        for dataset, rows in (
            (
                "SFRES",
                """
                ROUGE-1 | .129 .098 .109 .081
                ROUGE-2 | .124 .094 .094 .069
                ROUGE-L | .097 .073 .097 .071
                BERTScore | .156 .119 .138 .102
                MoverScore | .021 -.016 .075 .056
                BARTScore (CNN) | .154 .117 .138 .101
                UniEval (multi-task) | .225 .169 .333 .247
                GPTScore (D01) | .270 - .317 -
                GPTScore (D03) | .296 - .270 -
                GPT-4 | .283 .247 .389 .329
                AutoCalibrate (GPT-4) | .315 .272 .416 .351
                """,
            ),
            (
                "SFHOT",
                """
                ROUGE-1 | .116 .089 .113 .084
                ROUGE-2 | .080 .061 .086 .064
                ROUGE-L | .088 .067 .102 .076
                BERTScore | .135 .104 .126 .094
                MoverScore | .042 .033 .038 .029
                BARTScore (CNN) | .164 .126 .075 .055
                UniEval (multi-task) | .249 .191 .320 .238
                GPT-4 | .315 .277 .389 .331
                AutoCalibrate (GPT-4) | .357 .313 .440 .383
                """,
            ),
        )
    ),
    *(
        _Table(dataset, "001", "Table 4", _columns("consistency", *_QAGS), rows)
        for dataset, rows in (
            (
                "QAGS-CNN/DM",
                """
                ROUGE-1 | .338 .318 .248
                ROUGE-2 | .459 .418 .333
                ROUGE-L | .357 .324 .254
                BERTScore | .576 .505 .399
                MoverScore | .414 .347 .271
                FactCC | .416 .484 .376
                BARTScore | .735 .680 .557
                CTC | .619 .564 .450
                UniEval | .682 .662 .532
                G-Eval-3.5 | .477 .516 .410
                G-Eval-4 | .631 .685 .591
                GPT-4 | .605 .649 .606
                AutoCalibrate (GPT-4) | .740 .744 .663
                """,
            ),
            (
                "QAGS-XSUM",
                """
                ROUGE-1 | -.008 -.049 -.040
                ROUGE-2 | .097 .083 .068
                ROUGE-L | .024 -.011 -.009
                BERTScore | .024 .008 .006
                MoverScore | .054 .044 .036
                FactCC | .297 .259 .212
                BARTScore | .184 .159 .130
                CTC | .309 .295 .242
                UniEval | .461 .488 .399
                G-Eval-3.5 | .211 .406 .343
                G-Eval-4 | .558 .537 .472
                GPT-4 | .637 .637 .637
                AutoCalibrate (GPT-4) | .662 .662 .662
                """,
            ),
        )
    ),
)

_CLOSER_LOOK = (
    _Table(
        "Topical-Chat",
        "002",
        "Table 2",
        _columns(_DIALOGUE, *_CLOSER),
        """
        ChatGPT score only, auto-CoT | .393 .358 .468 .391 .549 .513 .311 .566
        ChatGPT score only | .408 .331 .443 .404 .557 .535 .358 .582
        ChatGPT free text | .464 .476 .524 .426 .611 .557 .563 .666
        ChatGPT rate-explain | .569 - .505 - .564 - .561 - | not printed: recomputed from the paper's replies
        ChatGPT analyze-rate | .524 .470 .477 .416 .567 .524 .580 .693 | printed in the row rate-explain
        """,
    ),
    _Table(
        "Topical-Chat",
        "002",
        "Table 3",
        _columns(_DIALOGUE, *_CLOSER),
        """
        ChatGPT rate-explain, auto-CoT | .554 .478 .512 .429 .613 .566 .555 .664
        """,
    ),
    _Table(
        "Topical-Chat",
        "002",
        "Table 4",
        _columns(_DIALOGUE, *_CLOSER_SAMPLE),
        """
        GPT-4 score only, auto-CoT | .549 - .594 - .627 - .531 - | quoted there from another paper
        ChatGPT score only, auto-CoT | .445 .358 .498 .391 .579 .513 .685 .566
        ChatGPT score only | .431 .331 .507 .404 .631 .535 .666 .582
        ChatGPT free text | .572 .476 .523 .426 .676 .557 .747 .666
        ChatGPT rate-explain | .621 .512 .472 .425 .610 .509 .771 .663
        ChatGPT analyze-rate | .573 .470 .486 .416 .628 .524 .725 .693
        """,
    ),
)

_REPEVAL_JUDGES = (
    "RepEval PCA (20 pairs);RepEval PCA (5 pairs);RepEval SVM;RepEval PCA (20 pairs), text only;GPT-4;GPT-3.5;"
    "Mistral-7b;GPTScore;BARTScore;UniEval;BLEU;Meteor;BERTScore"
).split(";")
_REPEVAL = """
BAGEL | fluency | .330 .236 .358 .060 .325 .222 .156 .152 .241 .309 .193 .109 .247
Newsroom | fluency | .548 .565 .515 .478 .297 .218 .411 .565 .596 .443 -.163 .157 .182
SFHOT | fluency | .351 .345 .368 .108 .305 .178 .238 .135 .164 .312 -.054 .015 .164
SFRES | fluency | .377 .370 .391 .021 .352 .289 .272 .229 .226 .332 .100 .143 .183
SummEval | fluency | .447 .424 .419 .324 .245 .120 .285 .288 .285 .451 -.015 .090 .194
Persona-Chat | fluency | .360 .404 .363 .306 .391 .310 .288 -.030 .034 .239 -.124 .073 .322
Topical-Chat | fluency | .329 .368 .336 .402 .324 .203 .309 .087 .027 .302 -.093 .200 .292
WebNLG | fluency | .587 .534 .633 .268 .503 .409 .401 .072 .330 .521 .318 .332 .499
QAGS-CNN/DM | consistency | .541 .561 .453 - .505 .295 .380 .583 .680 .618 .082 .326 .507
QAGS-XSUM | consistency | .497 .550 .524 - .457 .315 .185 .081 .159 .387 -.164 -.015 -.057
SummEval | consistency | .426 .421 .342 - .436 .269 .210 .355 .334 .435 .048 .152 .200
Newsroom | coherence | .444 .392 .273 .373 .274 .207 .421 .595 .623 .458 -.201 .198 .221
SummEval | coherence | .534 .516 .418 .263 .347 .247 .262 .412 .408 .592 .125 .134 .333
"""

_FUSION_EVAL = (
    _Table(
        "SummEval",
        "004",
        "Table 1",
        _columns(_SUMMARY, *_SYSTEM),
        """
        NLI (source, answer) | .368 .267 .900 .733 .585 .467 .600 .483
        Bleurt (source, answer) | .544 .417 .877 .717 .777 .617 .744 .633
        SumBleurt (source, answer) | .838 .700 .406 .333 .694 .533 .806 .650
        Fusion-Eval (source, answer) | .791 .650 .874 .745 .865 .700 .929 .795
        """,
        "system level (16 systems), though the caption says summary level",
    ),
    _Table(
        "SummEval",
        "004",
        "Table 1",
        _columns(_SUMMARY, ("spearman", "sample")),
        "GPTScore | .434 .449 .403 .381",
    ),
    _Table(
        "SummEval",
        "004",
        "Table 1",
        _columns(_SUMMARY, *_SAMPLE),
        """
        G-Eval-3.5, probabilities | .359 .313 .361 .344 .339 .323 .327 .288
        G-Eval-4, probabilities | .560 .472 .501 .459 .438 .408 .511 .444
        G-Eval-4, no CoT | .564 .454 .493 .413 .403 .334 .538 .427
        """,
    ),
)

_PATTERNS = {
    "Newsroom": "newsroom",
    "SummEval": "summeval",
    "SFRES": "sfres",
    "SFHOT": "sfhot",
    "BAGEL": "bagel",
    "WebNLG": "webnlg",
    "QAGS-CNN/DM": "qags.*cnn",
    "QAGS-XSUM": "qags.*xsum",
    "Topical-Chat": "topical.?chat",
    "Persona-Chat": "persona.?chat",
}
"""Data set → what names of golden sets look like that hold it."""


@cache
def published_numbers() -> tuple[Published, ...]:
    """Every value kept, in the order of papers and tables."""
    tables = (*_AUTOCALIBRATE, *_CLOSER_LOOK)
    return (
        *(one for table in tables for one in table.records()),
        *_repeval_numbers(),
        *(one for table in _FUSION_EVAL for one in table.records()),
    )


def published_datasets() -> tuple[str, ...]:
    """Names of the data sets that some value is about."""
    return tuple(dict.fromkeys(one.dataset for one in published_numbers()))


def published_aspects(dataset: str) -> tuple[str, ...]:
    """Aspects of `dataset` that some value is about."""
    return tuple(dict.fromkeys(one.aspect for one in published_numbers() if one.dataset == dataset))


def likely_dataset(golden_name: str) -> str | None:
    """The published data set that a golden set of this name seems to hold; a person confirms it."""
    name = golden_name.lower()
    return next((dataset for dataset, pattern in _PATTERNS.items() if re.search(pattern, name)), None)


def published_for(dataset: str, aspect: str) -> tuple[Published, ...]:
    """All values about one aspect of one data set, in the order of papers and tables."""
    return tuple(one for one in published_numbers() if one.dataset == dataset and one.aspect == aspect)


def departure(one: Published, statistic: Statistic, level: Level) -> str:
    """How the value's measure differs from the one asked for; empty where it is the same."""
    told = [] if one.statistic == statistic else [f"{one.statistic.capitalize()}, not {statistic.capitalize()}"]
    told += [] if one.level == level else [f"{one.level} level, not {level}"]
    return "; ".join(told)


def published_beside(name: str, numbers: Sequence[Published]) -> Published | None:
    """The number printed for a judge of this name, by its letters and digits ("rouge1" is ROUGE-1), if there is one."""
    wanted = _letters(name)
    return next((one for one in numbers if wanted and _letters(one.judge) == wanted), None)


def _letters(name: str) -> str:
    """Lower-case letters and digits; what stands in brackets and a closing F (F1 of ROUGE) are left out."""
    bare = re.sub(r"\(.*?\)", "", name.lower())
    told = "".join(re.findall(r"[a-z0-9]+", bare.replace("metric_", "")))
    return re.sub(r"^(rouge[12l])f1?$", r"\1", told)


def _repeval_numbers() -> list[Published]:
    told = []
    for line in _REPEVAL.strip().splitlines():
        dataset, aspect, values = (part.strip() for part in line.split("|"))
        told += [
            Published(dataset, aspect, "spearman", "dataset", judge, float(value), "003", "Table 1")
            for judge, value in zip(_REPEVAL_JUDGES, values.split(), strict=True)
            if value != "-"
        ]
    return told
