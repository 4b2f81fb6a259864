"""Cutting texts, and every group of features on hand-made examples whose values are derived in the comments."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.offline import grounding
from core.judging.offline.features import FEATURES, INDEX, feature_matrix
from core.judging.offline.text import cut, measure_text, slips, split_sentences
from core.records import Item

SOURCE = "The red fox crossed the old bridge on Monday . Farmer Miller saw 3 hens . He did not shoot ."


def language_of(text: str) -> dict[str, float]:
    return measure_text(cut(text))


def against(text: str, source: str = SOURCE) -> dict[str, float]:
    return grounding.measure(cut(text), grounding.SourceText(source))


def test_sentences_end_at_stops_and_lines_but_not_at_abbreviations_or_initials() -> None:
    assert split_sentences("Mr. A. Bell left. He was U.S. staff! Why?\nNobody knows") == [
        "Mr. A. Bell left.",
        "He was U.S. staff!",
        "Why?",
        "Nobody knows",
    ]


def test_tokenised_clitics_are_joined_again() -> None:
    assert cut("the team 's coach did n't and ca n't , they 've said").words == (
        "the", "team's", "coach", "didn't", "and", "can't", "they've", "said",
    )  # fmt: skip


def test_repetition() -> None:
    shares = language_of("Red dogs bark. Red dogs bark.")
    # Stems: red dog bark red dog bark: 3 distinct of 6 words.  Pairs rd db br rd db: 3 distinct of 5.
    # Triples rdb dbr brd rdb: 3 distinct of 4.
    assert shares["repeated_words"] == 0.5
    assert shares["repeated_pairs"] == pytest.approx(0.4)
    assert shares["repeated_triples"] == pytest.approx(0.25)


def test_connection() -> None:
    tied = language_of("The fox ran home. But the fox was tired. It slept.")
    loose = language_of("The fox ran home. Prices rose sharply. Tulips bloom.")
    # Neighbours share {fox} then nothing: one of two pairs linked.
    assert tied["linked_sentences"] == 0.5
    assert loose["linked_sentences"] == 0.0
    assert tied["connective_starts"] == 0.5
    assert tied["pronoun_links"] == 0.5
    assert language_of("He left the house.")["leans_back"] == 1.0


@pytest.mark.parametrize(
    ("feature", "broken", "sound"),
    [
        ("unfinished", "The fox ran to", "The fox ran home."),
        ("lower_case_starts", "the fox ran home.", "The fox ran home."),
        ("grammar_slips", "The a fox is are home.", "The fox is home."),
        ("grammar_slips", "He ate a apple.", "He ate an apple."),
    ],
)
def test_fluency_cues_rise_on_the_broken_text_only(feature: str, broken: str, sound: str) -> None:
    assert language_of(broken)[feature] > 0
    assert language_of(sound)[feature] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He gave a answer and an book .", 2),
        ("The of it .", 1),
        ("They was late .", 1),
        ("A European tour, an FBI agent, an hour and the May sun: Alan A. Smith, who won, is glad that he is here.", 0),
        ("He had had it. I know that that is so very, very true.", 0),
    ],
)
def test_slips_of_grammar_are_counted(text: str, expected: int) -> None:
    assert slips(cut(text)) == expected


def test_fragments_of_a_verbatim_text() -> None:
    features = against("The red fox crossed the old bridge")  # one fragment of 7 words
    assert features["fragment_coverage"] == 1.0
    assert features["log_density"] == pytest.approx(math.log1p(49 / 7))
    assert features["log_longest_copy"] == math.log1p(7)
    assert features["new_pairs"] == 0.0
    assert features["splices"] == 0.0


def test_unseen_words() -> None:
    features = against("The fox met Farmer Jones and three wolves")  # unseen: met, jones, three, wolves
    assert features["log_unseen_words"] == math.log1p(4)
    assert features["known_words"] == pytest.approx(2 / 6)  # fox, farmer of six content words


def test_coverage_and_lead() -> None:
    lead, late = against("The red fox crossed the bridge ."), against("He did not shoot .")
    assert lead["first_sentence_recall"] > late["first_sentence_recall"]
    assert against(SOURCE)["salient_recall"] == 1.0
    assert against("The red fox")["log_compression"] == pytest.approx(math.log(18 / 3))  # 18 words in the source


def test_reply_uses_last_turn_and_fact() -> None:
    dialogue = grounding.Dialogue("Hi there\nDo you like jazz music?", "Jazz began in New Orleans.")
    good = grounding.measure_reply(cut("Jazz music began in Orleans."), dialogue)
    bad = grounding.measure_reply(cut("Tulips bloom early."), dialogue)
    # Content of the good reply: jazz music began orlean; in the fact: jazz began orlean; in the last turn: jazz music.
    assert good["fact_precision"] == 0.75
    assert good["log_last_turn_words"] == math.log1p(2)
    assert good["unrelated_words"] == 0.0
    assert bad["fact_precision"] == 0.0
    assert bad["unrelated_words"] == 1.0


@pytest.mark.parametrize(
    ("source", "slots"),
    [
        ("inform(name='the inn',area=noma)", [("name", "the inn"), ("area", "noma")]),
        ("confirm(dogs_allowed=dont_care)", [("dogs allowed", "dont care")]),
        ("inform(name='Rock | Roll Cafe', food='thai')", [("name", "Rock | Roll Cafe"), ("food", "thai")]),
        ("name[Blue Spice], area[riverside]", [("name", "Blue Spice"), ("area", "riverside")]),
        ("Alan_Bean | birthPlace | Wheeler", [("", "Alan Bean"), ("birth Place", "Wheeler")]),
        ("no structure at all", [("", "no structure at all")]),
    ],
)
def test_slots_are_parsed(source: str, slots: list[tuple[str, str]]) -> None:
    assert grounding.parse_slots(source) == slots


def test_slots_told_and_missing() -> None:
    data = grounding.Data("inform(name='old inn',area=noma,food=thai)")
    features = grounding.measure_data(cut("The Old Inn in Noma has parking."), data)
    assert features["slots_told"] == pytest.approx(2 / 3)
    assert features["log_slots_missing"] == math.log1p(1)
    assert features["log_extra_words"] == math.log1p(1)  # parking


def test_the_table_names_every_feature_that_is_measured() -> None:
    items = [Item("a", "Rome is old.", source="city=Rome", context="Rome is old.")]
    kinds = ("source_target", "source_context_target", "data_text")
    measured = [np.isfinite(feature_matrix(items, kind)[0]) for kind in kinds]  # type: ignore[arg-type]
    assert np.logical_or.reduce(measured).all()


def test_features_that_do_not_apply_are_absent() -> None:
    single = feature_matrix([Item("a", "The fox ran.")], "single")[0]
    assert np.isfinite(single[INDEX["log_words"]])
    assert np.isnan(single[INDEX["known_words"]])
    assert np.isnan(feature_matrix([Item("a", " …  ")], "source_target")).all()
    assert feature_matrix([], "single").shape == (0, len(FEATURES))


HOSTILE = [
    "",
    " \n",
    "…",
    "🦊🦊",
    "שלום עולם",
    "مرحبا بالعالم؟",
    "a" * 70_000,
    "!" * 25_000,
    " " * 25_000 + "x",
    "a " * 12_000,
]
HOSTILE += ["A. " * 8_000]
HOSTILE += ["(" * 20_000, "a_" * 10_000 + "=", "x\x00y", "'" * 25_000 + "s", "\u202eevil\u202c text", ". " * 12_000]
HOSTILE += ["| " * 10_000, "a=b," * 5_000, "word, " * 5_000, "狐狸跑回家了。它很累。"]


@pytest.mark.parametrize("kind", ["source_target", "source_context_target", "data_text"])
def test_hostile_texts_give_finite_or_absent_features_quickly(kind: str) -> None:
    start = time.process_time()
    items = [Item(str(i), text, source=text, context=text) for i, text in enumerate(HOSTILE)]
    features = feature_matrix(items, kind)  # type: ignore[arg-type]
    assert not np.isinf(features).any()
    assert time.process_time() - start < 60  # about a second, unless something is quadratic


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_measured(target: str, source: str) -> None:
    for kind in ("source_target", "source_context_target", "data_text"):
        features = feature_matrix([Item("a", target, source=source, context=source)], kind)  # type: ignore[arg-type]
        assert not np.isinf(features).any()
