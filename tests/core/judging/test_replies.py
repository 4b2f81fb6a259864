"""The probability-weighted score against sums made by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.llm_judge import verdict_of, weighted_rating
from core.judging.parse import read_rating
from core.providers.completions import Completion, Failure, TokenLogprobs
from core.records import Item, Scale, Scored, Task, Usage

SCALE = Scale(1, 5)
TASK = Task("coherence", "single", SCALE)


def place(token: str, **probabilities: float) -> TokenLogprobs:
    """A place whose alternatives have these probabilities; `_3` stands for " 3", `w` words for words."""
    top = tuple((name.replace("_", " ").removeprefix("d"), math.log(p)) for name, p in probabilities.items())
    return TokenLogprobs(token, top)


def completion(text: str, *places: TokenLogprobs) -> Completion:
    return Completion(text, "stop", Usage(requests=1), logprobs=places)


def weigh(reply: Completion) -> float | None:
    return weighted_rating(reply, read_rating(reply.text, SCALE), SCALE)


def test_the_mean_over_what_lies_on_the_scale() -> None:
    # (.5·4 + .3·5 + .1·3) / (.5 + .3 + .1) = 3.8 / .9; 9 and "The" are off the scale
    weighted = weigh(completion("4", place("4", d4=0.5, d5=0.3, d3=0.1, d9=0.05, The=0.05)))
    assert weighted == pytest.approx(3.8 / 0.9, abs=1e-12)


def test_spellings_of_one_rating_add_up() -> None:
    # " 4" and "4" are both 4: (.4 + .2)·4 + .4·2 = 3.2
    reply = completion("4", TokenLogprobs("4", ((" 4", math.log(0.4)), ("4", math.log(0.2)), ("▁2", math.log(0.4)))))
    assert weigh(reply) == pytest.approx(3.2, abs=1e-12)


@pytest.mark.parametrize("text", ["On 1-5: 5", "5/5", "5 out of 5", "Score (1-5): 5", "5", "**5**"])
def test_the_place_is_that_of_the_rating_and_not_the_end_of_a_scale(text: str) -> None:
    # the rating has .5 each on 5 and 4; whatever else says a number is sure of it
    meant = {"On 1-5: 5": 8, "5/5": 0, "5 out of 5": 0, "Score (1-5): 5": 13, "5": 0, "**5**": 2}[text]
    places = [place("5", d5=0.5, d4=0.5) if k == meant else TokenLogprobs(c, ((c, 0.0),)) for k, c in enumerate(text)]
    assert weigh(completion(text, *places)) == pytest.approx(4.5)


@pytest.mark.parametrize(
    "reply",
    [
        completion("4"),
        completion("3.5", place("3", d3=0.9, d4=0.1), place("."), place("5", d5=1.0)),
        completion("four", place("four", four=1.0)),
        completion("4", place("4", The=1.0)),
        completion("4", place("4")),
    ],
)
def test_where_it_cannot_be_told_there_is_none(reply: Completion) -> None:
    assert weigh(reply) is None


@given(st.dictionaries(st.sampled_from("012345678"), st.floats(1e-9, 1.0), min_size=1))
def test_it_lies_between_the_ratings_that_have_a_share(mass: dict[str, float]) -> None:
    total = sum(mass.values())
    top = tuple((token, math.log(p / total)) for token, p in mass.items())
    on_scale = [int(token) for token in mass if 1 <= int(token) <= 5]
    text = str(on_scale[0]) if on_scale else "3"
    weighted = weigh(completion(text, TokenLogprobs(text, top)))
    if on_scale:
        assert weighted is not None
        assert min(on_scale) - 1e-9 <= weighted <= max(on_scale) + 1e-9
    else:
        assert weighted is None


def test_replies_without_probabilities_count_as_read_and_are_told() -> None:
    weighted = completion("4", place("4", d4=0.6, d2=0.2, The=0.2))  # (.6·4 + .2·2) / .8 = 3.5
    item = Item("i", "x" * 12_001)
    replies = [weighted, completion("2"), completion("?"), Failure("down")]
    verdict = verdict_of(TASK, item, replies, weighted=True)
    assert isinstance(verdict, Scored)
    assert verdict.value == pytest.approx((3.5 + 2) / 2)
    assert (verdict.n_read, verdict.n_unread, verdict.n_unweighted) == (2, 2, 1)
    assert verdict.explanation.splitlines() == [
        "4",
        "Weighted by probability: 3.50.",
        "1 of 2 replies have no usable probabilities, so their stated ratings are used.",
        "The target was shortened from 12,001 to 12,000 characters.",
    ]
    plain = verdict_of(TASK, item, [weighted, completion("2")])
    assert isinstance(plain, Scored)
    assert (plain.value, plain.n_unweighted) == (3.0, 0)
