"""What a style may be, what it is called, and that it comes back from JSON as it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.judging.render import PROMPTS
from core.judging.scoring_styles import MIXED, PERSONAS, SCHEMAS, WRITTEN_FORMS, Style


@st.composite
def styles(draw: st.DrawFn) -> Style:
    form = draw(st.sampled_from(WRITTEN_FORMS))
    weighted = form == "score_only" and draw(st.booleans())
    return Style(
        form=form,
        samples=draw(st.integers(2 if form == "mix" else 1, 40)),
        temperature=draw(st.floats(0, 2)),
        top_p=draw(st.floats(0.01, 1)),
        persona=draw(st.sampled_from(PERSONAS)),
        steps=draw(st.text(max_size=40)),
        weighted=weighted,
        max_tokens=draw(st.integers(1, 4096)),
        structured=form not in ("free_text", "stars") and not weighted and draw(st.booleans()),
    )


@given(styles())
def test_a_style_comes_back_from_json(style: Style) -> None:
    assert Style.from_json(json.loads(json.dumps(style.as_json()))) == style


@given(styles())
def test_every_style_can_be_sampled_and_its_prompts_are_files(style: Style) -> None:
    sampling = style
    assert len(sampling.places) == style.samples
    assert len(set(sampling.places)) == style.samples, "no sample is asked for twice"
    assert all((PROMPTS / f"{prompt}.txt").is_file() for prompt in sampling.prompts)
    assert Style.from_state(json.loads(json.dumps(sampling.as_state()))) == sampling


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"haiku": 1}, "no field 'haiku'; there are form, samples"),
        ({"form": "haiku"}, "score_only, free_text, stars, rate_explain, analyze_rate, mix"),
        ({"persona": "pirate"}, "none, helpful, annotator"),
        ({"samples": 0}, "whole number from 1"),
        ({"samples": True}, "whole number"),
        ({"temperature": -0.1}, "from 0 to 2"),
        ({"temperature": float("nan")}, "from 0 to 2"),
        ({"top_p": 0}, "above 0"),
        ({"steps": "x" * 8001}, "at most 8,000"),
        ({"form": "mix"}, "at least 2 samples; 1 came"),
        ({"form": "rate_explain", "weighted": True}, "score_only, not rate_explain"),
        ({"form": "free_text", "structured": True}, "JSON is asked for with"),
        ([], "object with fields"),
    ],
)
def test_what_a_style_cannot_be_is_told(given_: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Style.from_json(given_)
    assert says in str(caught.value)


def test_the_mix_takes_turns_and_analyze_rate_gets_the_odd_one() -> None:
    places = Style("mix", 5, 1.0).places
    assert [(place.form, place.sample) for place in places] == [
        ("analyze_rate", 0),
        ("rate_explain", 0),
        ("analyze_rate", 1),
        ("rate_explain", 1),
        ("analyze_rate", 2),
    ]
    shares = Style("mix", 5, 1.0).shares()
    assert shares == [("score_analyze_rate.v1", "analyze_rate", 3), ("score_rate_explain.v1", "rate_explain", 2)]
    assert [place.schema for place in Style("mix", 2, structured=True).places] == [SCHEMAS[form] for form in MIXED]


@given(st.integers(2, 30), st.integers(0, 10))
def test_more_samples_keep_the_places_of_those_before(n: int, more: int) -> None:
    few, many = Style("mix", n, 1.0).places, Style("mix", n + more, 1.0).places
    assert many[:n] == few
