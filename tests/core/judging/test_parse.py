"""Every form of a stated rating, what must not be taken for one, and the reasons for reading none."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.parse import read_rating
from core.records import Scale
from tests.replies import responses_of

FIVE = Scale(1, 5)
BINARY = Scale(0, 1)
HUNDRED = Scale(0, 100)
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

STATED = [
    ("4", 4),
    (" 4.\n", 4),
    ("Rating: 4", 4),
    ("**Rating:** 4", 4),
    ("**Rating: 4**", 4),
    ("Rating: **4**", 4),
    ("Score: 4/5", 4),
    ("Score = 4", 4),
    ("Score - 4", 4),
    ("score: [4]", 4),
    ("Score: <4>", 4),
    ('Score: "4"', 4),
    ("# Score\n\n4\n\nThe text is good.", 4),
    ("Score (1-5): 4", 4),
    ("Coherence Score (1-5): 4\nThe text is clear.", 4),
    ("Coherence (on a scale of 1-5): 4", 4),
    ("Coherence: 4", 4),
    ("- Coherence: 4", 4),
    ("1. Coherence: 4", 4),
    ("(1-5): 4", 4),
    ("4 out of 5", 4),
    ("I would give this a 4 out of 5.", 4),
    ("Four stars. The summary has two errors.", 4),
    ("4 stars", 4),
    ("★★★★☆", 4),
    ("⭐⭐⭐⭐", 4),
    ("Rating: ★★★★☆", 4),
    ('{"score": 4, "reason": "clear"}', 4),
    ('{"reason": "A score of 5 needs more.", "score": 4}', 4),
    ('{"coherence": 4}', 4),
    ('```json\n{\n  "rating": 4.5\n}\n```', 4.5),
    ("{'score': '4'}", 4),
    ("Score: 2.5", 2.5),
    ("Score: 2,5", 2.5),
    ("Score: 3½", 3.5),
    ("Score: three and a half", 3.5),
    ("Ｓｃｏｒｅ: ４", 4),
    ("評価\n４", 4),
    ("Rating：４", 4),
    ("Rating: four", 4),
    ("I rate it four.", 4),
    ("The text is clear, earning a score of 4.", 4),
    ("It is clear, scoring a four out of five.", 4),
    ("The summary has gaps, score 2.", 2),
    ("The coherence score for this text is 2.", 2),
    ("Somewhat (2)", 2),
    ("2 (dull)", 2),
    ("It is readable on the sentence level. 4", 4),
    ("I would give it a score of 3.5.", 3.5),
    ("My rating would be a 4.", 4),
    ("Final score: 3.", 3),
    ("Therefore, the final rating is 3", 3),
    ("4 - the text is mostly clear", 4),
    ("4. The text is mostly clear.", 4),
    ("Score: 4 because of 2 errors", 4),
    ("Answer: 4", 4),
    ("Verdict: 4 points", 4),
    ("<think>Maybe a 2? Score: 2.</think>\nScore: 4", 4),
    ("Score: 5.0", 5),
    ("Rating:\n4", 4),
    ('It has slips, such as "the bus is set to perform at awards." 3/5', 3),
    ("The rating is: 4", 4),
]

STARS = [
    ("Two-and-a-half stars.", 2.5),
    ("Two-and-a-half stars. The text is clear.", 2.5),
    ("I give it two-and-a-half stars.", 2.5),
    ("Two and one-half stars", 2.5),
    ("2½ stars", 2.5),
    ("2 1/2 stars", 2.5),
    ("Rating: three-and-a-half stars", 3.5),
    ("Score: 2 1/2", 2.5),
    ("Three-and-a-half out of 5", 3.5),
    ("Four and a half-stars", 4.5),
    ("Three (3) stars. The text is clear.", 3),
    ("I give it three (3) stars.", 3),
    ("3 (three) stars", 3),
    ("Two and a half (2.5) stars", 2.5),
    ("Three (3) out of five (5) stars", 3),
    ("⭐️⭐️⭐️⭐️", 4),
    ("★★★☆☆ and clear", 3),
    ("★★★ and clear", 3),
    ("Four—the text is clear.", 4),
    ("I give three stars and half of the text is clear.", 3),
    ("3-sentence summary. Score: 4", 4),
]

NO_WHOLE_STARS = [
    "Three (4) stars",
    "Three stars and a half",
    "I give it three stars and a half.",
    "Three and a quarter stars",
    "Rating: three and a quarter",
    "I'd say three-and-half stars",
    "Dos estrellas y media",
    "Trois étoiles et demie",
    "3 to 4 stars",
    "Three or four stars",
    "Three-four stars",
    "Between three and four stars",
    "Two to three and a half stars",
    "★★½",
    "Four-legged animals are described well.",
    "The summary gives a three-sentence overview.",
    "This is a one-sided text.",
    "Two-thirds of it is clear.",
]

LAST_OR_STRONGEST = [
    ("Rating: 3\nRationale: It would be a 5 if the second part were shorter.", 3),
    ("Rating: 3\nRationale: A score of 5 would require a source.", 3),
    ("Rating: 2\nRationale: only 1 of the 3 claims holds, and 4 words are misspelt.", 2),
    ('Score: 2\nReasons: the text itself says "Score: 5", which is no reason to give it.', 2),
    ("Score: 2\nReasons: the text claims a rating: 5 of its own.", 2),
    ("Score: 4\nIn the article, United scored 2 and received 3 yellow cards.", 4),
    ("Analysis: A first look suggests a score of 4.\nRating: 2", 2),
    ("Analysis: Written in 1998, it names 3 people and 2 towns.\nScore: 4", 4),
    ("Rating: 3\nOn reflection there is more to it.\nRating: 2", 2),
    ("4 out of 5 sentences are fluent, so the score is 2.", 2),
    ("3 of the claims are wrong. I give it a score of 2.", 2),
    ("Three stars. It describes a hotel with five stars.", 3),
    ("I give it a 3. A score of 5 would need more detail.", 3),
    ("I considered a score of 5, but I give it a 4.", 4),
    ("On a scale of 1-5, I would rate this a 3.", 3),
    ("On a scale from 1 to 5, where 5 is best: 2", 2),
    ("The score is 4, not a 5.", 4),
    ("Score: 4 (not quite a 5)", 4),
    ("Overall the text earns a 4 rather than a 3.", 4),
    ("It is a 3 instead of a score of 4.\nScore: 3", 3),
    ("Score: 1 - the scale runs 1-5 and this is the bottom", 1),
    ("Score: 4\nAnswer: yes", 4),  # no value of this scale, and not said to be none
]

OF_THE_ASPECT = [
    ("The summary flows well, making it a perfect 5 in terms of coherence.", 5),
    ("It is easy to follow, making it a perfect 5 in terms of coherence. It has 2 small gaps.", 5),
    ("It loses its thread, which makes it a 2 on coherence.", 2),
    ("The parts hang together, making this text a solid four.", 4),
    ("I rate the coherence 4. Its structure rates a 5, its transitions rate a 2.", 4),
    ("The coherence of the text deserves a 4. Structure: 5. Transitions: 3.", 4),
    ("The coherence score: 4. Breakdown: flow score: 5, logic score: 2.", 4),
    ("Coherence: 4\nScore: 5 for structure\nScore: 3 for transitions", 4),
    ("Structure rates a 5, transitions rate a 2. For coherence I give it a 4.", 4),
    ("Coherence looks like a score of 3 at first. Structure rates a 5. Overall I give it a 4.", 4),
    ("Coherence: 3\nOn reflection there is more to it.\nRating: 2", 2),
    ("Coherence: 3\nStructure: 5\nFinal score: 4", 4),
]

NOT_STATED = [
    "8/10",  # on another scale than the one that was asked for
    "Score: 8/10",
    "Score: 85%",
    "Score: 2 3/4",
    "Score (4): it is good",
    "Coherence 4/5. Structure 5/5, transitions 2/5.",
    "The coherence is a 4. Structure scores a 5 and transitions score a 2.",
    "I give it a 4 for coherence. I give it a 2 for transitions.",
    "Better links would make it a perfect 5 in terms of coherence.",
    "Its gaps keep it from making it a perfect 5 in terms of coherence.",
    "It is clear, making it one of the best.",
    "It rambles, making it a 2 hour read.",
    "The text has its merits.",
    "On a scale of 1-5, with 1 the lowest.",
    "The article of 1998 names 3 people.",
    "Rating: 1-5",
    "Score: 3-4",
    "Score: N/A",
    "Score: 4\nOn reflection:\nScore: N/A",
    "Rating:\nThe text is clear.",
    "1. It is fluent.\n2. It repeats itself.\n3. It ends early.",
    "The home team won 3-2 and scored 2 late goals.",
    "It lists 4 errors and 2 omissions.",
    "Chapter 4 is missing.",
    "A score of 5 would require a source.",
]

OUTSIDE = [
    "Rating: 7",
    "Score: 0",
    "Rating: -1",
    "Score: 11\nFar above.",
    "6",
]

REFUSED = [
    "I'm sorry, but I cannot rate this text.",
    "I am unable to provide a rating.",
    "As an AI language model, I do not have opinions.",
    "I can’t assist with that.",
]


@pytest.mark.parametrize(("reply", "value"), STATED + STARS + LAST_OR_STRONGEST + OF_THE_ASPECT)
def test_a_stated_rating_is_read(reply: str, value: float) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    assert (reading.value, reading.reason) == (value, None)
    assert reading.span is not None
    assert reply[slice(*reading.span)].strip()


@pytest.mark.parametrize("reply", NOT_STATED + NO_WHOLE_STARS)
def test_what_is_no_verdict_is_not_read(reply: str) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    assert (reading.value, reading.reason) == (None, "no verdict")


@pytest.mark.parametrize("reply", OUTSIDE)
def test_a_number_outside_the_scale_is_not_clipped(reply: str) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    assert (reading.value, reading.reason) == (None, "out of range")


@pytest.mark.parametrize("reply", REFUSED)
def test_a_refusal_is_told_from_silence(reply: str) -> None:
    assert read_rating(reply, FIVE).reason == "refused"


def test_what_the_provider_says_of_the_end_counts() -> None:
    assert read_rating("Score: 4", FIVE, finish="length").reason == "truncated"
    assert read_rating("", FIVE, finish="length").reason == "truncated"
    assert read_rating("Score: 4", FIVE, finish="refusal").reason == "refused"
    assert read_rating(" \n", FIVE).reason == "empty"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes", 1),
        ("No.", 0),
        ("Yes, the claim is in the article.", 1),
        ("Answer: no\nThe year differs.", 0),
        ("The claim is not in the article.\n\nNo", 0),
        ("1", 1),
        ("0/1", 0),
        ("Rating: 0.5", 0.5),
        ("Score: true", 1),
    ],
)
def test_yes_and_no_count_on_a_binary_scale(reply: str, value: float) -> None:
    assert read_rating(reply, BINARY).value == value


def test_yes_is_no_verdict_on_a_wider_scale() -> None:
    assert read_rating("Yes, it is coherent.", FIVE).reason == "no verdict"


@pytest.mark.parametrize(("letter", "value"), [("A", 1), ("(E)", 5), ("c.", 3)])
def test_a_letter_alone_counts_options_from_the_low_end(letter: str, value: float) -> None:
    assert read_rating(letter, FIVE).value == value


def test_the_aspect_may_be_the_label_and_holds_no_pattern() -> None:
    assert read_rating("Factual Consistency: 4", FIVE, "factual_consistency").value == 4
    assert read_rating("a.*b(: 4\nScore: 3", FIVE, "a.*b(").value == 3


FORMS = [
    "{n}",
    "Score: {n}",
    "**Score:** {n}",
    "Score ({low}-{high}): {n}",
    "Fluency: {n}\nClear and short.",
    "{n}/{high}",
    "{n} out of {high}",
    "Analysis: Only 3 of 7 parts hold.\nRating: {n}",
    "The text is fine, resulting in a score of {n}.",
    '{{"score": {n}, "reason": "as asked"}}',
    "I give it a {n}.",
]


@given(low=st.integers(0, 1), high=st.sampled_from([3, 5, 6, 7, 10, 100]), data=st.data(), form=st.sampled_from(FORMS))
def test_every_integer_in_every_form_is_read_back(low: int, high: int, data: st.DataObject, form: str) -> None:
    number = data.draw(st.integers(low, high))
    reply = form.format(n=number, low=low, high=high)
    assert read_rating(reply, Scale(low, high), "fluency").value == number


@given(number=st.integers(1, 5), form=st.sampled_from(["Score: {n}", "{n} stars", "Rated {n} out of five.", "{n}"]))
def test_numbers_in_words_are_read_back(number: int, form: str) -> None:
    reply = form.format(n=WORDS[number])
    assert read_rating(reply, FIVE).value == number


@given(value=st.decimals(0, 100, places=2, allow_nan=False))
def test_decimals_are_read_back_with_point_and_comma(value: object) -> None:
    assert read_rating(f"Score: {value}", HUNDRED).value == float(str(value))
    assert read_rating(f"Score: {str(value).replace('.', ',')}", HUNDRED).value == float(str(value))


@given(st.text(max_size=300))
def test_any_text_gives_a_number_on_the_scale_or_a_reason(reply: str) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    if reading.value is None:
        assert reading.reason is not None
    else:
        assert 1 <= reading.value <= 5


def test_real_star_ratings_equal_their_first_word(shared_data: Path) -> None:
    """In these replies the verdict is the first word ("Three stars. ..."): an independent reading."""
    replies = responses_of(shared_data / "summeval_responses/relevance_gpt35_stareval.jsonl.gz").values()
    for reply in chain.from_iterable(replies):
        first = reply.split()[0].lower()
        expected = WORDS.index(first) if first in WORDS else float(first)
        assert read_rating(reply, FIVE, "relevance").value == expected
