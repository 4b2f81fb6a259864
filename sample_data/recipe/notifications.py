"""Push notifications of a newsroom: 40 reports, 6 invented systems, and a house style that only the house knows.

A hand-written report has two wordings of its result, each with one figure in braces: exact, inexact, left out, false.
A system may put a scene before it, a verdict behind it, a question or one more sentence beside it.  Fluent and
well-meaning texts break the house style that way; dry ones keep it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypedDict

from recipe.ratings import Damage, RatingScale, Written, label_columns, rate

SCALES = {"house_style": RatingScale(1, 5)}
FIGURES = ("exact", "inexact", "left out", "false")
MOST_WORDS = 25


class NewsReport(TypedDict):
    """A hand-written report, its result in two wordings, and what a system may put beside it."""

    id: str
    report: str
    a: str
    b: str
    scene: str
    verdict: str
    hook: str
    detail: str


@dataclass(frozen=True, slots=True)
class Habit:
    """Chances of a scene, a verdict, a hook and a detail, and weights of what becomes of the figure (`FIGURES`)."""

    scene: float
    verdict: float
    hook: float
    detail: float
    figure: tuple[float, float, float, float]


_HOUSE = json.loads((Path(__file__).parents[1] / "texts" / "newsroom.json").read_text("utf-8"))
SYSTEMS, CAREFUL_SYSTEMS = (
    {name: Habit(*chances) for name, chances in _HOUSE[part].items()} for part in ("systems", "careful_systems")
)
"""The usual systems; and some that were told the house style, but for the result that comes first."""
STYLE: dict[str, float] = _HOUSE["style"]
"""What a breach of each rule of the house takes away, as a share; the house forgives a figure nothing."""
REASONS: dict[str, list[str]] = _HOUSE["reasons"]
"""Breach → what raters write of it, the gravest first, "none" where nothing is wrong.  No two wordings share a phrase,
so nothing that reads them can wait for one."""
SAYS_WHY = (0.7, 0.45, 0.2)
"""How often each of the three raters gives a reason; seldom for a good label, above 3."""

_FIGURE = re.compile(r"\{([^|}]*)\|([^|}]*)\|([^|}]*)\|([^|}]*)\}")
_COMMON = re.compile(
    r"(The|A|An|All|In|Two|Children|Farmers|Data|Wind|Second|Rangers|Without|Engineers|Auditors|Residents|Drivers|Archaeologists|Pupils|Hips|Gardens|Thieves|Moss|"
    r"Blue|Teenagers)\b"
)


def build(reports: Sequence[NewsReport], seed: int) -> list[dict[str, object]]:
    """40 × 6 items."""
    return _rows(reports, SYSTEMS, seed, "")


def newer(later: Sequence[NewsReport], seed: int) -> dict[str, list[dict[str, object]]]:
    """Two later batches about reports of their own: the same systems again, and careful ones that lead with a scene."""
    batches = {"second_batch": SYSTEMS, "careful_systems": CAREFUL_SYSTEMS}
    return {f"notifications_{name}": _rows(later, systems, seed, name) for name, systems in batches.items()}


def _rows(
    reports: Sequence[NewsReport], systems: Mapping[str, Habit], seed: int, batch: str
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for report in reports:
        told: set[str] = set()
        for system, habit in systems.items():
            rng = Random(f"{seed}/notifications/{batch}/{report['id']}/{system}")
            written = write(report, habit, rng)
            while written.text in told:
                written = write(report, habit, rng)
            told.add(written.text)
            ratings = rate(written, SCALES, rng)
            why = Random(f"{seed}/reasons/{batch}/{report['id']}/{system}")  # of its own: ratings stay as they were
            broken = [damage.name for damage in written.damages]
            reasons = [
                _reason(broken, value, why) if why.random() < often else ""
                for value, often in zip(ratings["house_style"], SAYS_WHY, strict=True)
            ]
            rows.append(
                {
                    "item_id": f"{report['id']}/{system}",
                    "source_id": report["id"],
                    "system_id": system,
                    "source": report["report"],
                    "target": written.text,
                    **label_columns(ratings),
                    "reason_house_style": reasons,
                }
            )
    return rows


def write(report: NewsReport, habit: Habit, rng: Random) -> Written:
    """A notification and the rules of the house that it breaks."""
    figure = rng.choices(range(len(FIGURES)), habit.figure)[0]
    text = _FIGURE.sub(lambda match: match[figure + 1], rng.choice((report["a"], report["b"])))
    text = re.sub(r"\s+([,.:]|\s)", r"\1", text)
    broken = ["figure"] if figure else []
    if rng.random() < habit.verdict:
        text = f"{text[:-1]}{report['verdict']}."
        broken.append("opinion")
    late = rng.random() < habit.scene
    if late:
        text = f"{report['scene']} {text[0].lower() if _COMMON.match(text) else text[0]}{text[1:]}"
    more = [report["detail"]] if rng.random() < habit.detail else []
    if rng.random() < habit.hook:
        broken.append("talks to the reader")
        leads = rng.random() < 0.45
        late = late or leads
        more.insert(0, text if leads else report["hook"])
        text = report["hook"] if leads else text
    text = " ".join([text, *more])
    n_words = len(text.split())
    broken += ["result not first"] if late else []
    broken += ["more than one sentence"] if more else []
    if n_words > MOST_WORDS:
        broken.append("over 25 words" if n_words < 33 else "over 32 words")
    damages = [Damage(name, {"house_style": STYLE[name]}, name == "opinion") for name in broken]
    return Written(text, tuple(damages))


def _reason(broken: list[str], value: int, chance: Random) -> str:
    """One of the two gravest breaches in words; mostly "" for a good label."""
    if value > 3 or not broken:
        return chance.choice(REASONS["none"]) if chance.random() < 0.15 else ""
    return chance.choice(REASONS[chance.choice(sorted(broken, key=[*REASONS].index)[:2])])
