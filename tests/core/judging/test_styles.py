"""What a style may be, what it is called, and that it comes back from JSON as it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.judging.render import PERSONAS, PROMPTS
from core.judging.scoring_styles import MIXED, SCHEMAS, STYLE_FORMS, Style


@st.composite
def styles(draw: st.DrawFn) -> Style:
    form = draw(st.sampled_from(STYLE_FORMS))
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
    assert len(sampling.slots) == style.samples
    assert len(set(sampling.slots)) == style.samples, "no sample is asked for twice"
    assert all((PROMPTS / f"{prompt}.txt").is_file() for prompt in sampling.prompts)
    assert Style.from_state(json.loads(json.dumps(sampling.as_state()))) == sampling


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"haiku": 1}, "haiku cannot be 1"),
        ({"form": "haiku"}, "form cannot be 'haiku'"),
        ({"persona": "pirate"}, "persona cannot be 'pirate'"),
        ({"samples": 0}, "between 1 and 200"),
        ({"samples": True}, "samples cannot be True"),
        ({"temperature": -0.1}, "between 0 and 2"),
        ({"temperature": float("nan")}, "between 0 and 2"),
        ({"top_p": 0}, "above 0"),
        ({"steps": "x" * 8001}, "at most 8,000"),
        ({"form": "mix"}, "at least 2 samples; 1 came"),
        ({"form": "rate_explain", "weighted": True}, "score_only, not rate_explain"),
        ({"form": "free_text", "structured": True}, "JSON is asked for with"),
    ],
)
def test_what_a_style_cannot_be_is_told(given_: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Style.from_json(given_)
    assert says in str(caught.value)


def test_the_mix_takes_turns_and_analyze_rate_gets_the_odd_one() -> None:
    places = Style("mix", 5, 1.0).slots
    assert [(slot.form, slot.sample) for slot in places] == [
        ("analyze_rate", 0),
        ("rate_explain", 0),
        ("analyze_rate", 1),
        ("rate_explain", 1),
        ("analyze_rate", 2),
    ]
    assert [slot.schema for slot in Style("mix", 2, structured=True).slots] == [SCHEMAS[form] for form in MIXED]
