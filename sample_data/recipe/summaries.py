"""Summaries: 24 articles by 6 invented systems, each of which damages good summaries in its own mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypedDict

from recipe import wording
from recipe.ratings import Damage, RatingScale, Written, label_columns, rate

SCALES = {aspect: RatingScale(1, 5) for aspect in ("coherence", "consistency", "fluency", "relevance")}


class Falsehood(TypedDict):
    """A wrong version of summary sentence `at`."""

    at: int
    text: str


class Article(TypedDict):
    """A hand-written article; `summary` holds two wordings of each sentence, the main point first.

    Of the two falsehoods the first hides (swapped figures or names of the article, a turned verdict), the second
    brings in things the article does not say.
    """

    id: str
    article: str
    summary: list[list[str]]
    false: list[Falsehood]


@dataclass(frozen=True, slots=True)
class SummaryHabit:
    """How a system tends to fail: probabilities of 0, 1, 2, 3 operations, and the weights of favourite ones."""

    n_operations: tuple[float, float, float, float]
    leaning: dict[str, float]


SYSTEMS = {
    "heron-large": SummaryHabit((0.34, 0.34, 0.22, 0.10), {"falsify_hidden": 2.5, "drop_minor": 1.5}),
    "heron-small": SummaryHabit((0.10, 0.32, 0.38, 0.20), {"drop_main": 2.5, "cut_off": 2.0, "detail": 2.0}),
    "lark-2": SummaryHabit((0.16, 0.34, 0.32, 0.18), {"falsify_open": 3.0, "misstate": 2.5, "intrude": 1.5}),
    "plover": SummaryHabit((0.10, 0.36, 0.36, 0.18), {"lead": 4.0, "tail": 2.5, "detail": 2.0, "shuffle": 1.5}),
    "finch-mini": SummaryHabit((0.08, 0.28, 0.38, 0.26), {"garble": 3.0, "stutter": 3.0, "repeat": 2.5}),
    "wren-draft": SummaryHabit((0.20, 0.36, 0.30, 0.14), {"shuffle": 3.0, "repeat": 2.0, "swap": 2.0}),
}

NEWER_SYSTEMS = {
    "heron-next": SummaryHabit((0.30, 0.52, 0.18, 0.00), {"falsify_hidden": 9.0, "swap": 6.0}),
    "lark-3": SummaryHabit((0.34, 0.50, 0.16, 0.00), {"falsify_hidden": 6.0, "swap": 9.0}),
    "plover-2": SummaryHabit((0.40, 0.48, 0.12, 0.00), {"falsify_hidden": 8.0, "swap": 8.0}),
}
"""Systems that write well and hardly fail but where it is hard to see: made for the drift check of the demo."""
NEWER_ELSE = 0.1
"""Weight of an operation that a newer system does not lean to."""


@dataclass
class SummaryDraft:
    """A summary under way: its sentences, and for each the index of the key sentence it states (None: none)."""

    sentences: list[str]
    keys: list[int | None]
    damages: list[Damage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Desk:
    """What an operation may look at."""

    article: Article
    others: Sequence[Article]
    rng: Random


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """What is made of the articles: by which systems, under which name, and without the texts of which earlier rows.

    `name` stands in the item ids and in the seeds; `otherwise` weighs the operations that a system does not lean to.
    """

    systems: Mapping[str, SummaryHabit]
    name: str = ""
    earlier: Sequence[Mapping[str, object]] = ()
    otherwise: float = 0.5


def build(articles: Sequence[Article], seed: int, batch: SummaryBatch | None = None) -> list[dict[str, object]]:
    """One row an item, article by article, systems in their order; no two targets of an article alike."""
    batch = batch or SummaryBatch(SYSTEMS)
    rows: list[dict[str, object]] = []
    for article in articles:
        others = [other for other in articles if other["id"] != article["id"]]
        taken = {str(row["target"]) for row in batch.earlier if row["source_id"] == article["id"]}
        for system, habit in batch.systems.items():
            place = f"{article['id']}/{batch.name}{'/' if batch.name else ''}{system}"
            rng = Random(f"{seed}/summaries/{place}")
            written = _write(Desk(article, others, rng), habit, batch.otherwise)
            while written.text in taken:
                written = _write(Desk(article, others, rng), habit, batch.otherwise)
            taken.add(written.text)
            rows.append(_row(article, system, place, written, rng))
    return rows


def newer(articles: Sequence[Article], seed: int) -> dict[str, list[dict[str, object]]]:
    """Two later batches, name → rows: three of the systems again, then three newer ones; no text of before again."""
    first = build(articles, seed)
    again = {name: SYSTEMS[name] for name in ("heron-large", "lark-2", "plover")}
    second = build(articles, seed, SummaryBatch(again, "second", first))
    third = build(articles, seed, SummaryBatch(NEWER_SYSTEMS, "third", [*first, *second], NEWER_ELSE))
    return {"summaries_second_batch": second, "summaries_new_systems": third}


def _row(article: Article, system: str, place_id: str, written: Written, rng: Random) -> dict[str, object]:
    place = {"item_id": place_id, "source_id": article["id"], "system_id": system}
    texts = {"source": article["article"], "target": written.text}
    return place | texts | label_columns(rate(written, SCALES, rng))


def _write(desk: Desk, habit: SummaryHabit, otherwise: float) -> Written:
    rng = desk.rng
    draft = SummaryDraft(
        [rng.choice(pair) for pair in desk.article["summary"]], list(range(len(desk.article["summary"])))
    )
    n = rng.choices((0, 1, 2, 3), weights=habit.n_operations)[0]
    weights = {name: habit.leaning.get(name, otherwise) for name in OPERATIONS}
    chosen = wording.pick_weighted(weights, n, rng)
    for name in sorted(chosen, key=list(OPERATIONS).index):
        damage = OPERATIONS[name](draft, desk)
        if damage is not None:
            draft.damages.append(damage)
    return Written(" ".join(draft.sentences), tuple(draft.damages))


# ── operations, in the order in which they are applied; None: there was nothing to do it to ────────────────────


def _lead(draft: SummaryDraft, desk: Desk) -> Damage:
    n = desk.rng.choice((2, 3))
    draft.sentences, draft.keys = wording.sentences(desk.article["article"])[:n], [None] * n
    return Damage("lead", {"relevance": 0.42, "coherence": 0.10})


def _tail(draft: SummaryDraft, desk: Desk) -> Damage | None:
    if not any(key is not None for key in draft.keys):
        return None
    n = desk.rng.choice((2, 3))
    draft.sentences, draft.keys = wording.sentences(desk.article["article"])[-n:], [None] * n
    return Damage("tail", {"relevance": 0.70, "coherence": 0.32})


def _drop_main(draft: SummaryDraft, _: Desk) -> Damage | None:
    if 0 not in draft.keys:
        return None
    _remove(draft, draft.keys.index(0))
    return Damage("drop_main", {"relevance": 0.48, "coherence": 0.30})


def _drop_minor(draft: SummaryDraft, desk: Desk) -> Damage | None:
    n = min(desk.rng.choice((1, 2)), len(draft.sentences) - 1)
    for _ in range(n):
        _remove(draft, desk.rng.randrange(1, len(draft.sentences)))
    return Damage("drop_minor", {"relevance": 0.24 * n}) if n else None


def _detail(draft: SummaryDraft, desk: Desk) -> Damage | None:
    minor = [place for place, key in enumerate(draft.keys) if key]
    if not minor:
        return None
    place = desk.rng.choice(minor)
    side_issues = wording.sentences(desk.article["article"])[4:]
    draft.sentences[place], draft.keys[place] = desk.rng.choice(side_issues), None
    return Damage("detail", {"relevance": 0.34, "coherence": 0.20})


def _falsify_hidden(draft: SummaryDraft, desk: Desk) -> Damage | None:
    return _falsify(draft, desk.article["false"][0], Damage("falsify_hidden", {"consistency": 0.58}, hidden=True))


def _falsify_open(draft: SummaryDraft, desk: Desk) -> Damage | None:
    return _falsify(draft, desk.article["false"][1], Damage("falsify_open", {"consistency": 0.72, "relevance": 0.12}))


def _falsify(draft: SummaryDraft, falsehood: Falsehood, damage: Damage) -> Damage | None:
    if falsehood["at"] not in draft.keys:
        return None
    place = draft.keys.index(falsehood["at"])
    draft.sentences[place], draft.keys[place] = falsehood["text"], None
    return damage


def _swap(draft: SummaryDraft, desk: Desk) -> Damage | None:
    known = wording.numbers(desk.article["article"])
    changed = _change_one(draft, desk.rng, lambda text: wording.swap_number(text, known, desk.rng))
    return Damage("swap", {"consistency": 0.48}, hidden=True) if changed else None


def _misstate(draft: SummaryDraft, desk: Desk) -> Damage | None:
    known = wording.numbers(desk.article["article"])
    changed = _change_one(draft, desk.rng, lambda text: wording.misstate_number(text, known, desk.rng))
    return Damage("misstate", {"consistency": 0.55}) if changed else None


def _intrude(draft: SummaryDraft, desk: Desk) -> Damage:
    stranger = desk.rng.choice(wording.sentences(desk.rng.choice(desk.others)["article"])[2:])
    place = desk.rng.randrange(1, len(draft.sentences) + 1)
    draft.sentences.insert(place, stranger)
    draft.keys.insert(place, None)
    return Damage("intrude", {"coherence": 0.50, "consistency": 0.50, "relevance": 0.32})


def _repeat(draft: SummaryDraft, desk: Desk) -> Damage:
    place = desk.rng.randrange(len(draft.sentences))
    key, again = draft.keys[place], draft.sentences[place]
    paraphrased = key is not None and desk.rng.random() < 0.5
    if key is not None and paraphrased:
        again = next(text for text in desk.article["summary"][key] if text != again)
    draft.sentences.append(again)
    draft.keys.append(None)
    return Damage("repeat", {"coherence": 0.42, "fluency": 0.08 if paraphrased else 0.20, "relevance": 0.15})


def _shuffle(draft: SummaryDraft, desk: Desk) -> Damage | None:
    if len(draft.sentences) < 3:
        return None
    order = list(range(len(draft.sentences)))
    while order[0] == 0:
        desk.rng.shuffle(order)
    draft.sentences = [draft.sentences[i] for i in order]
    draft.keys = [draft.keys[i] for i in order]
    return Damage("shuffle", {"coherence": 0.58, "relevance": 0.06})


def _cut_off(draft: SummaryDraft, desk: Desk) -> Damage:
    draft.sentences[-1] = wording.cut_off(draft.sentences[-1], desk.rng)
    return Damage("cut_off", {"fluency": 0.48, "coherence": 0.18, "relevance": 0.14})


def _garble(draft: SummaryDraft, desk: Desk) -> Damage:
    share = desk.rng.choice((0.3, 0.5, 0.8))
    draft.sentences = [wording.garble(text, desk.rng, share=share) for text in draft.sentences]
    return Damage("garble", {"fluency": 0.30 + 0.45 * share, "coherence": 0.20 * share})


def _stutter(draft: SummaryDraft, desk: Desk) -> Damage:
    times = desk.rng.choice((1, 2, 3))
    whole = wording.stutter(" ".join(draft.sentences), desk.rng, times=times)
    draft.sentences, draft.keys = [whole], [None]
    return Damage("stutter", {"fluency": 0.22 + 0.13 * times, "coherence": 0.05 * times})


OPERATIONS: dict[str, Callable[[SummaryDraft, Desk], Damage | None]] = {
    "lead": _lead,
    "tail": _tail,
    "drop_main": _drop_main,
    "drop_minor": _drop_minor,
    "detail": _detail,
    "falsify_hidden": _falsify_hidden,
    "falsify_open": _falsify_open,
    "swap": _swap,
    "misstate": _misstate,
    "repeat": _repeat,
    "intrude": _intrude,
    "shuffle": _shuffle,
    "cut_off": _cut_off,
    "garble": _garble,
    "stutter": _stutter,
}


def _remove(draft: SummaryDraft, place: int) -> None:
    del draft.sentences[place], draft.keys[place]


def _change_one(draft: SummaryDraft, rng: Random, change: Callable[[str], str | None]) -> bool:
    """Apply `change` to the first sentence, in random order, that it can change."""
    for place in rng.sample(range(len(draft.sentences)), len(draft.sentences)):
        changed = change(draft.sentences[place])
        if changed is not None:
            draft.sentences[place], draft.keys[place] = changed, None
            return True
    return False
