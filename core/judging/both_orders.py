"""Pairs judged both ways round: a judge that prefers whatever stands first would else be taken for one with taste."""

from __future__ import annotations

from dataclasses import replace

from core.records import Item, Scale, Scored, Task, Unscored, Verdict
from core.texts import is_blank

NO_TEXT = "The text to rate is empty."


def orders_of(task: Task, item: Item) -> tuple[Item, ...]:
    """The item as it is shown: a pair also with its texts exchanged."""
    return (item, replace(item, target=item.context, context=item.target)) if task.kind == "pair" else (item,)


def has_texts(task: Task, item: Item) -> bool:
    """Whether there is something to judge: of a pair, both texts."""
    return not is_blank(item.target) and (task.kind != "pair" or not is_blank(item.context))


def verdict_of_both(straight: Verdict, turned: Verdict, scale: Scale) -> Verdict:
    """One verdict out of those on a pair and on the same pair the other way round.

    The mean, the second read backwards; Unscored where either is, for one alone would hold the judge's liking for a
    side.
    """
    if isinstance(straight, Unscored):
        return straight
    if isinstance(turned, Unscored):
        detail = f"The other way round: {turned.detail or turned.reason}"
        return replace(turned, detail=detail, raw=(*straight.raw, *turned.raw))
    backwards = scale.low + scale.high - turned.value
    value = (straight.value + backwards) / 2.0
    explanation = "\n\nThe other way round: ".join(filter(None, (straight.explanation, turned.explanation)))
    return Scored(
        straight.item_id,
        value,
        explanation,
        (*straight.raw, *turned.raw),
        n_read=straight.n_read + turned.n_read,
        n_unread=straight.n_unread + turned.n_unread,
        n_unweighted=straight.n_unweighted + turned.n_unweighted,
        turned=backwards,
    )
