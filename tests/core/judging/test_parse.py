"""Every form of a stated rating, what must not be taken for one, and the reasons for reading none.

`cases/forms.jsonl` holds the forms: German, Spanish, French, Chinese, JSON, stars, letters, marks, and replies that
state nothing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.parse import read_rating
from core.records import Scale
from tests.core.judging.test_reply_cases import scale_of

FIVE = Scale(1, 5)
WORDS = ("zero", "one", "two", "three", "four", "five")
FORMS = [json.loads(line) for line in (Path(__file__).parent / "cases/forms.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", FORMS, ids=lambda case: case["reply"][:60].encode("unicode_escape").decode())
def test_a_reply_is_read_or_has_its_reason(case: dict[str, object]) -> None:
    reply = str(case["reply"])
    reading = read_rating(reply, scale_of(str(case["scale"])), str(case["aspect"]))
    assert (reading.value, reading.reason) == (case["want"], case.get("reason"))
    if reading.value is not None:
        assert reading.span is not None
        assert reply[slice(*reading.span)].strip()


def test_what_the_provider_says_of_the_end_counts() -> None:
    assert read_rating("Score: 4", FIVE, finish="length").reason == "truncated"
    assert read_rating("Score: 4", FIVE, finish="refusal").reason == "refused"
    assert read_rating(" \n", FIVE).reason == "empty"
    assert read_rating("<think>I could say Score: 4", FIVE).reason == "empty"


IN_FORM = (
    "{n}|Score: {n}|**Score:** {n}|Score ({low}-{high}): {n}|Fluency: {n}\nClear and short.|{n}/{high}|"
    "{n} out of {high}|Analysis: Only 3 of 7 parts hold.\nRating: {n}|The text is fine, resulting in a score of {n}.|"
    'I give it a {n}.|{{"score": {n}, "reason": "as asked"}}'
).split("|")


@given(
    low=st.integers(0, 1), high=st.sampled_from([3, 5, 6, 7, 10, 100]), data=st.data(), form=st.sampled_from(IN_FORM)
)
def test_every_integer_in_every_form_is_read_back(low: int, high: int, data: st.DataObject, form: str) -> None:
    number = data.draw(st.integers(low, high))
    reply = form.format(n=number, low=low, high=high)
    assert read_rating(reply, Scale(low, high), "fluency").value == number


@given(
    number=st.integers(1, 5),
    form=st.sampled_from(
        ["{n}", "Score: {n}", "评分：{n}", "{n}/5", "Note : {n}", "{n} stars", "Rated {n} out of five."]
    ),
)
def test_numbers_in_words_and_full_width_digits_are_read_back(number: int, form: str) -> None:
    assert read_rating(form.format(n=chr(ord("０") + number)), FIVE).value == number
    if "/" not in form and "：" not in form and "Note" not in form:
        assert read_rating(form.format(n=WORDS[number]), FIVE).value == number


@given(value=st.decimals(0, 100, places=2, allow_nan=False))
def test_decimals_are_read_back_with_point_and_comma(value: object) -> None:
    assert read_rating(f"Score: {value}", Scale(0, 100)).value == float(str(value))
    assert read_rating(f"Score: {str(value).replace('.', ',')}", Scale(0, 100)).value == float(str(value))


@given(value=st.integers(1, 5), depth=st.integers(0, 30), name=st.sampled_from(["score", "Rating", "coherence"]))
def test_json_of_any_depth_is_read_back(value: int, depth: int, name: str) -> None:
    body: dict[str, object] = {"reason": "a 5 would need 2 sources", name: value}
    for _ in range(depth):
        body = {"part": body}
    assert read_rating(json.dumps(body), FIVE, "coherence").value == value
    assert read_rating(f"Here:\n```json\n{json.dumps(body, indent=1)}\n```", FIVE, "coherence").value == value


@given(st.text(max_size=300))
def test_any_text_gives_a_number_on_the_scale_or_a_reason(reply: str) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    assert reading.reason is not None if reading.value is None else 1 <= reading.value <= 5


EVIL = (
    '1|score |(|if |\n|score:\n|score: 4 |rating: 4, |a 4/5 |★|<think>|. |1. |é|评分：4|4分|{|{"a":|[[|{"score": 4, |"|'
    "note |not a |would be |(A) |Answer: A |4 stars |\\boxed{| \t|a b:1\n|1 1 |<score>|on a scale of 1-5 |1-5|İ|"
    "four |1,000|x: "
).split("|")


@pytest.mark.parametrize("evil", EVIL)
def test_time_grows_no_faster_than_the_reply(evil: str) -> None:
    """Ten times the text in at most thirty times the time (plus what a clock cannot tell)."""

    def seconds(length: int) -> float:
        text = (evil * (length // len(evil) + 1))[:length] + "x"
        start = time.process_time()
        read_rating(text, FIVE, "coherence")
        return time.process_time() - start

    short, long = seconds(10_000), seconds(100_000)
    assert long < 30 * short + 0.25
