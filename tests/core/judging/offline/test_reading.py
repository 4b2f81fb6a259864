"""The grammar of criteria: what is written is read back exactly; whatever else is listed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.offline.features import KEYS, LEVELS, Clause, prior, read, write
from core.records import Scale, Task

KINDS = ("single", "source_target", "source_context_target", "conversation", "data_text")


def weights_of(text: str) -> dict[str, float]:
    return dict(read(text).clauses)


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.sampled_from(sorted(LEVELS)) | st.integers(1, 9999).map(lambda hundredths: hundredths / 100),
        max_size=60,
    ),
    st.sets(st.sampled_from(KEYS)),
    st.booleans(),
    st.sampled_from(KINDS),
    st.sampled_from(["coherence", "human_overall-quality", "no: repetition", "", "Fluency"]),
)
def test_what_is_written_is_read_back_exactly(
    strengths: dict[str, float], lowered: set[str], whole: bool, kind: str, aspect: str
) -> None:
    wanted = {key: -strength if key in lowered else strength for key, strength in strengths.items()}
    text = write([Clause(*each) for each in wanted.items()], aspect, kind, whole=whole)  # type: ignore[arg-type]
    for form in (text, text.upper(), "\n".join(f"* {line}" for line in text.split(". ")), text.replace(" ", "  ")):
        reading = read(form)
        assert (dict(reading.clauses), reading.whole, reading.unread) == (wanted, whole, ())


def test_an_edited_clause_counts() -> None:
    text = write((Clause("commas.", 0.37),), "fluency", "single", whole=True)
    assert weights_of(text) == {"commas.": 0.37}
    assert weights_of(text.replace("0.37", "1.25")) == {"commas.": 1.25}
    assert weights_of(text.replace("Reward", "Penalise")) == {"commas.": -0.37}
    assert weights_of(text.replace(" (strength 0.37)", "").replace("Reward", "Strongly reward")) == {"commas.": 1.5}
    assert weights_of("Strongly penalise texts that say the same thing twice.") == {"repetition": 1.5}
    assert weights_of("Reward texts that do not repeat themselves.") == {"repetition": 1.0}


@pytest.mark.parametrize(
    "line",
    [
        "Reward short texts.",
        "Do not reward texts that are short.",
        "Reward texts that are short and funny.",
        "Very strongly reward texts that are short.",
        "Reward texts that are short (strength high).",
        "Score 5: fluent and natural",
        "Длинные тексты хуже.",
    ],
)
def test_lines_outside_the_grammar_have_no_effect_and_are_listed(line: str) -> None:
    known = (
        "Judge the relevance of the text as a whole, with these points in mind.\n"
        "- Reward texts that show feeling or an opinion."
    )
    reading = read(f"{known}\n- {line}")
    assert (dict(reading.clauses), reading.whole, reading.unread) == ({"feeling": 1.0}, True, (line,))


def test_only_these_points_leaves_the_aspect_out() -> None:
    task = Task("coherence", "source_target", Scale(1, 5))
    weights = read("Judge the coherence of the text by these points only. Reward texts that are short.").weights(
        prior(task)
    )
    assert {KEYS[i]: w for i, w in enumerate(weights) if w} == {"length": -1.0}
    assert (read("").weights(prior(task)) == prior(task)).all()


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert read(text).clauses == ()


def test_a_huge_text_is_read_in_time() -> None:
    assert weights_of("not " * 200_000) == {}
    assert weights_of("Reward texts that are short. " * 50_000) == {"length": -3.0}
