"""Push notifications of a newsroom: 40 reports, 6 invented systems, and a house style that only the house knows.

A hand-written report has two wordings of its result, each with one figure in braces: exact, inexact, left out, false.
A system may put a scene before it, a verdict behind it, a question or one more sentence beside it.  Fluent and
well-meaning texts break the house style that way; dry ones keep it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypedDict

from recipe.ratings import Damage, RatingScale, Written, label_columns, rate

SCALES = {"house_style": RatingScale(1, 5)}
FIGURES = ("exact", "inexact", "left out", "false")
MOST_WORDS, FAR_TOO_MANY = 25, 33


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


SYSTEMS = {
    "ticker-dry": Habit(0.28, 0.08, 0.06, 0.20, (7.0, 1.0, 0.7, 0.8)),
    "engage-large": Habit(0.38, 0.32, 0.28, 0.12, (7.0, 1.5, 0.8, 0.5)),
    "explain-medium": Habit(0.50, 0.12, 0.08, 0.40, (8.5, 0.8, 0.4, 0.4)),
    "brief-tiny": Habit(0.25, 0.18, 0.15, 0.05, (5.5, 2.0, 1.5, 0.8)),
    "formal-medium": Habit(0.40, 0.15, 0.10, 0.25, (8.0, 1.0, 0.5, 0.5)),
    "warm-small": Habit(0.45, 0.22, 0.18, 0.15, (7.5, 1.2, 0.7, 0.4)),
}
CAREFUL_SYSTEMS = {
    f"ledger-{name}": Habit(scene, 0.0, 0.0, detail, (9.0, 0.3, 0.2, 0.2))
    for name, scene, detail in (("a", 0.5, 0.3), ("b", 0.4, 0.2), ("c", 0.6, 0.4), ("d", 0.5, 0.2), ("e", 0.3, 0.4))
}
"""Systems that were told the house style, but for the result that comes first."""

STYLE = {
    "figure": 0.72,
    "result not first": 0.58,
    "opinion": 0.34,
    "talks to the reader": 0.30,
    "over 25 words": 0.20,
    "over 32 words": 0.34,
    "more than one sentence": 0.08,
}
"""What a breach of each rule of the house takes away, as a share; the house forgives a figure nothing."""
OVERLOOKED = ("opinion",)
HOOK_LEADS = 0.45

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
            rows.append(
                {
                    "item_id": f"{report['id']}/{system}",
                    "source_id": report["id"],
                    "system_id": system,
                    "source": report["report"],
                    "target": written.text,
                    **label_columns(rate(written, SCALES, rng)),
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
        leads = rng.random() < HOOK_LEADS
        late = late or leads
        more.insert(0, text if leads else report["hook"])
        text = report["hook"] if leads else text
    text = " ".join([text, *more])
    n_words = len(text.split())
    broken += ["result not first"] if late else []
    broken += ["more than one sentence"] if more else []
    if n_words > MOST_WORDS:
        broken.append("over 25 words" if n_words < FAR_TOO_MANY else "over 32 words")
    damages = [Damage(name, {"house_style": STYLE[name]}, name in OVERLOOKED) for name in broken]
    return Written(text, tuple(damages))
