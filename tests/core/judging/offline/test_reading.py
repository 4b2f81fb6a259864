"""The language of criteria: what is written is read back exactly; people's own wording by its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.offline.criteria import LEVELS, Clause, read, write
from core.judging.offline.features import CONCEPTS, KEYS, prior
from core.records import Scale, Task

KINDS = ("single", "source_target", "source_context_target", "conversation", "data_text")


def weights_of(text: str) -> dict[str, float]:
    return {clause.key: clause.weight for clause in read(text).clauses}


@given(
    st.dictionaries(st.sampled_from(KEYS), st.tuples(st.sampled_from(sorted(LEVELS)), st.booleans()), max_size=12),
    st.booleans(),
    st.sampled_from(KINDS),
    st.sets(st.sampled_from(KEYS), max_size=3),
    st.sampled_from(["coherence", "human_overall-quality", "no: repetition", "", "Fluency"]),
)
def test_what_is_written_is_read_back_exactly(
    chosen: dict[str, tuple[float, bool]], whole: bool, kind: str, off: set[str], aspect: str
) -> None:
    wanted = {key: level if up else -level for key, (level, up) in chosen.items()}
    text = write(tuple(Clause(k, w) for k, w in wanted.items()), aspect, kind, whole=whole, ignored=tuple(off))  # type: ignore[arg-type]
    reading = read(text)
    assert {clause.key: clause.weight for clause in reading.clauses} == wanted
    assert reading.whole == whole
    assert set(reading.ignored) == off
    assert not reading.unread


@given(st.dictionaries(st.sampled_from(KEYS), st.integers(-9999, 9999).filter(bool), max_size=60))
def test_strengths_are_read_back_exactly(hundredths: dict[str, int]) -> None:
    wanted = {key: number / 100 for key, number in hundredths.items()}
    clauses = tuple(Clause(key, weight) for key, weight in wanted.items())
    assert weights_of(write(clauses, "coherence", "source_target", whole=True)) == wanted


def test_an_edited_strength_counts() -> None:
    text = write((Clause("commas.", 0.37),), "fluency", "single", whole=True)
    assert weights_of(text) == {"commas.": 0.37}
    assert weights_of(text.replace("0.37", "1.25")) == {"commas.": 1.25}
    assert weights_of(text.replace("Reward", "Please do not reward")) == {"commas.": -0.37}
    assert weights_of("Short texts are better (strength 0.8).") == {"length": -0.8}


@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(sorted(LEVELS)), min_size=1, max_size=5))
def test_case_white_space_and_typographic_changes_alter_nothing(chosen: dict[str, float]) -> None:
    text = write(tuple(Clause(k, w) for k, w in chosen.items()), "coherence", "source_target", whole=True)
    assert weights_of(text.upper()) == chosen
    assert weights_of("\n".join(f"- {line}." for line in text.rstrip(".").split(". "))) == chosen
    assert weights_of(text.replace("texts that", "summaries that")) == chosen


def test_phrases_of_concepts_are_distinct() -> None:
    phrases = [phrase for concept in CONCEPTS for phrase in (concept.high, concept.low)]
    assert len(set(phrases)) == len(phrases)


@pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept.key)
def test_an_edited_clause_still_names_its_concept(concept: object) -> None:
    """A person changes the frame of a sentence but keeps its words: both poles keep their direction."""
    high, low, key = concept.high, concept.low, concept.key  # type: ignore[attr-defined]
    assert weights_of(f"Please reward any article that does {high} nicely").get(key, 0) > 0
    assert weights_of(f"Please penalise any article that does {low} sadly").get(key, 0) > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reward coverage of the main points.", {"coverage": 1.0}),
        ("Above all, the summary must be faithful.", {"faithful": 2.0}),
        ("Slightly prefer shorter texts.", {"length": -0.25}),
        ("To some extent reward longer texts.", {"length": 0.5}),
        ("Mainly reward extractive texts.", {"copying": 1.5}),
        ("It should not be too long.", {"length": -1.0, "moderate": 1.0}),
        ("Texts must not invent facts.", {"faithful": 1.0}),
        ("A faithful text does not contain stray symbols.", {"faithful": 1.0, "clean": 1.0}),
        ("Avoid repetition.", {"repetition": 1.0}),
        ("Lower the score for repetition.", {"repetition": 1.0}),
        ("Repetition is bad.", {"repetition": 1.0}),
        ("Reward repetition.", {"repetition": -1.0}),
        ("Do not reward long texts.", {"length": -1.0}),
        ("Penalise verbatim copies.", {"copying": -1.0}),
        ("Lower the score for texts that miss key facts, lack a verb or hold stray symbols.",
         {"coverage": 1.0, "sentences": 1.0, "clean": 1.0}),
        ("Reward extractive texts rather than long ones.", {"copying": 1.0, "length": -1.0}),
        ("Penalise poor grammar.", {"grammar": 1.0}),
        ("Penalise coherence problems.", {"linked": 1.0}),
        ("Check for repetition and unfinished sentences.", {"repetition": 1.0, "finished": 1.0}),
        ("Score 1: full of grammatical errors\nScore 5: fluent and natural", {"grammar": 2.0}),
        ("A good summary covers the main points, is concise and does not repeat itself.",
         {"coverage": 1.0, "length": -1.0, "repetition": 1.0}),
    ],
)  # fmt: skip
def test_words_weights_and_negation_in_handwritten_text(text: str, expected: dict[str, float]) -> None:
    weights = weights_of(text)
    assert {key: weights.get(key) for key in expected} == expected


def test_ignored_concepts_are_switched_off_and_unread_sentences_kept() -> None:
    reading = read("Length does not matter. Do not penalise copies. The moon is made of cheese.")
    assert set(reading.ignored) == {"length", "copying"}
    assert reading.unread == ("The moon is made of cheese.",)
    task = Task("relevance", "source_target", Scale(1, 5))
    assert read("Do not consider the main points.").weights(prior(task))[KEYS.index("coverage")] == 0.0
    assert prior(task)[KEYS.index("coverage")] > 0


def test_only_these_points_leaves_the_aspect_out() -> None:
    task = Task("coherence", "source_target", Scale(1, 5))
    weights = read("Judge by these points only. Reward short texts.").weights(prior(task))
    assert {KEYS[i]: w for i, w in enumerate(weights) if w} == {"length": -1.0}
    assert (read("").weights(prior(task)) == prior(task)).all()


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert all(abs(clause.weight) <= 3 for clause in read(text).clauses)


def test_a_huge_text_is_read_in_time() -> None:
    assert weights_of("not " * 200_000) == {}
    assert weights_of("Reward short texts. " * 50_000) == {"length": -3.0}
