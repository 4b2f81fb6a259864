"""What a judge beside the people says in a sentence, no stronger than its interval: one wording for every place."""

from __future__ import annotations

from core.records import Interval
from core.stats.annotator_test import PASSES_AT, AnnotatorTest
from core.stats.beside_people import MARGIN, BesidePeople, Standing

STANDING_WORDS: dict[Standing, str] = {
    "above": "above a person",
    "level": "as good as a person",
    "below": "below a person",
    "open": "cannot be told apart",
}
NO_SINGLE_RATINGS = "so nothing can be said about the judge beside people"


def beside_people_words(found: BesidePeople, measure: str, *, judge: str = "The judge") -> str:
    """Where `judge` stands beside a person, with figures, interval, p and what they rest on; `measure` names the axis.

    >>> # The judge agrees with these raters better than one of them does with the others: 0.61 against 0.52, …
    """
    if found.difference is None or found.judge.value is None or found.person.value is None:
        return f"{judge} cannot be set beside people here: {found.reason}."
    figures = f"{_number(found.judge.value)} against {_number(found.person.value)} for a person"
    apart = f"difference {_signed(found.difference)} {_range(found.interval)}{_p(found.p)}"
    told = f"{figures}, each against the mean of the other raters ({apart}; {measure}, {basis(found)})."
    match found.standing:
        case "above":
            return f"{judge} agrees with these raters better than one of them does on average: {told}"
        case "below":
            return f"{judge} agrees with these raters less well than one of them does on average: {told}"
        case "level" if found.interval is not None:
            least = _number(max(-found.interval.low, 0.0))
            return f"{judge} agrees with these raters as well as one of them does, at worst {least} less: {told}"
        case _:
            why = f" ({found.reason})" if found.reason else ""
            return f"{judge} cannot be told apart from one of these raters{why}: {told}"


def basis(found: BesidePeople) -> str:
    """``"300 items, 60 sources, 3 raters"``; the panel is named where there are several."""
    raters = f"{found.n_raters} raters" + (f" of the panel {found.panel}" if found.panel else "")
    return f"{_counted(found.n_items, 'item')}, {_counted(found.n_sources, 'source')}, {raters}"


def annotator_test_words(found: AnnotatorTest) -> str:
    """Whether the judge may take a rater's place, with omega, rho and what the test rests on."""
    name = "Alternative annotator test" + (" clustered by source (ours)" if found.clustered else "")
    if found.omega is None:
        return f"{name}: undefined, {found.reason}."
    outdone = sum(one.replaceable for one in found.by_rater)
    verdict = "no verdict" if found.passes is None else "passed" if found.passes else "not passed"
    which = f"{found.n_raters} raters" + (f" of the panel {found.panel}" if found.panel else "")
    rests = f"ε = {found.epsilon:g}, {_counted(found.n_items, 'item')}, {_counted(found.n_sources, 'source')}"
    told = (
        f"{name}: {verdict}. The judge could stand in for {outdone} of {which} "
        f"(ω = {_number(found.omega)}, {_number(PASSES_AT)} passes; ρ = {_number(found.rho or 0.0)}; {rests})."
    )
    return " ".join([told, *found.cautions])


def margin_words() -> str:
    """What "as good as a person" asks for."""
    return f"“As good as” needs the whole interval above {_signed(-MARGIN)}."


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def _range(interval: Interval | None) -> str:
    return "(no interval)" if interval is None else f"[{_signed(interval.low)}, {_signed(interval.high)}]"


def _p(p: float | None) -> str:
    if p is None:
        return ""
    return ", p < .001" if p < 0.001 else f", p = {p:.3f}".replace("0.", ".", 1)


def _counted(n: int, one: str) -> str:
    return f"{n:,} {one}{'' if n == 1 else 's'}"
