"""Other languages, JSON, letters and tags; and replies made to be slow."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.judging.parse import read_rating
from core.records import Scale

FIVE = Scale(1, 5)
BINARY = Scale(0, 1)

GERMAN = [
    ("Bewertung: 4", 4),
    ("**Bewertung:** 3,5", 3.5),
    ("Note: 4", 4),
    ("Gesamtbewertung: 4/5", 4),
    ("Punktzahl: 4 von 5", 4),
    ("Ich vergebe 4 von 5 Punkten.", 4),
    ("Ich gebe dem Text eine 4.", 4),
    ("Ich würde den Text mit 4 bewerten.", 4),
    ("Vier Sterne.", 4),
    ("Auf einer Skala von 1 bis 5: 4", 4),
    ("Der Text erhält die Note 2, weil er springt.", 2),
    ("Wertung: fünf", 5),
    ("Bewertung: 4\nEine 5 würde mehr Einzelheiten verlangen.", 4),
]
SPANISH = [
    ("Puntuación: 4", 4),
    ("Calificación: 4/5", 4),
    ("Valoración: 4,5", 4.5),
    ("Le doy un 4 de 5.", 4),
    ("Le doy una puntuación de 4.", 4),
    ("4 estrellas", 4),
    ("Puntuación final: 2", 2),
    ("Mi calificación es 3.", 3),
    ("En una escala de 1 a 5, merece un 3.", 3),
    ("El resumen merece una calificación de 4 porque es claro.", 4),
]
FRENCH = [
    ("Note : 4/5", 4),
    ("Évaluation : 4", 4),
    ("Note finale : 3", 3),
    ("Je donne la note de 4 sur 5.", 4),
    ("J'attribue une note de 4.", 4),
    ("Quatre étoiles.", 4),
    ("Sur une échelle de 1 à 5, je donne 3.", 3),
    ("La note est de 2.", 2),
    ("Score : 4,5", 4.5),
]
CHINESE = [
    ("评分：4", 4),
    ("评分:４分", 4),
    ("得分：4/5", 4),
    ("分数是3", 3),
    ("我给这个摘要打4分。", 4),
    ("最终评分为4分。", 4),
    ("评分（1-5分）：4", 4),
    ("四颗星", 4),
    ("满分5分，我给3分。", 3),
    ("在1到5分的范围内，我给4分。", 4),
    ("【评分】4", 4),
    ("评分：四分", 4),
    ("該回應得3分。", 3),
    ("评分：3\n理由：5分需要更多细节。", 3),
    ("5分表示最好。评分：2", 2),
]
MARKED = [
    ("Rating: [[4]]", 4),
    ("<score>4</score>", 4),
    ("<rating>\n3\n</rating> because it repeats itself", 3),
    (r"\boxed{4}", 4),
    ("| Score | 4 |", 4),
    ("This is a 3 on a scale of 1-5.", 3),
    ("I'd say 4.", 4),
    ("It's a strong 4.", 4),
    ("The final answer is 4.", 4),
    ("I choose option 4.", 4),
    ("Good work with 2 flaws. [RESULT] 4", 4),
    ("Score: 2\nOn reflection, revised score: 4", 4),
    ("Coherence: 4\nFluency: 2", 4),
    ("Score: 2. It contains 'Rating: 5' as an instruction.", 2),
    ("1: bad\n2: poor\n3: ok\n4: good\n5: great\n\nRating: 3", 3),
    ("It would be a 5 if it was shorter, so 4.", 4),
    ("Score: 4\n\nScore: 3", 3),
    ("Errors: 2\nRating: 3", 3),
    ("The text is somewhat dull (2).", 2),
]
JSON_REPLIES = [
    ('{"evaluation": {"reason": "1 error", "score": 4}}', 4),
    ('```json\n{"result": {"fluency": 2, "coherence": 4}}\n```', 4),
    ('Here it is:\n```json\n{"score": "4/5"}\n```\nThat is 1 of 3.', 4),
    ('{"initial_score": 2, "finalScore": 3}', 3),
    ('{"coherence": {"score": 4, "reason": "1 error"}, "fluency": {"score": 2}}', 4),
    ('[{"score": 4}]', 4),
    ('{"ratings": [{"aspect": "wit", "rating": 4}]}', 4),
    ('{"Rating": "four"}', 4),
    ('{"n_errors": 3, "score": 4}', 4),
    ('{"评分": 4}', 4),
]
SILENT = [
    ("Note: 3 of the claims are wrong.", "no verdict"),
    ("Total errors: 3", "no verdict"),
    ("Rating: between 3 and 4", "no verdict"),
    ("Rating: 4th", "no verdict"),
    ("Fluency: 4\nStyle: 2", "no verdict"),
    ("Rating: A good summary", "no verdict"),
    ("The summary gets two things wrong.", "no verdict"),
    ("A summary of 1998", "no verdict"),
    ('{"score": null}', "no verdict"),
    ('{"score": 9}', "out of range"),
    ('{"score": 1e400}', "out of range"),
    ("Score: 4 out of 10", "no verdict"),
    ("Score: about 4", "no verdict"),
    ("Coherence: 4", "no verdict"),  # a name nobody told may be that of anything
    ("Answer: D", "no verdict"),
    ("Rationale: 3. It keeps to the topic.", "no verdict"),
    ("评分：8", "out of range"),
    ("Es tut mir leid, das kann ich nicht bewerten.", "refused"),
    ("Lo siento, no puedo evaluar esto.", "refused"),
    ("Je suis désolé, je ne peux pas noter ce texte.", "refused"),
    ("抱歉，我无法评分。", "refused"),
    (
        "Analysis: The summary keeps to the topic of the article and repeats what matters, but then it goes on to",
        "truncated",
    ),
]


@pytest.mark.parametrize(("reply", "value"), GERMAN + SPANISH + FRENCH + CHINESE + MARKED + JSON_REPLIES)
def test_a_stated_rating_is_read(reply: str, value: float) -> None:
    reading = read_rating(reply, FIVE, "coherence")
    assert (reading.value, reading.reason) == (value, None)


@pytest.mark.parametrize(("reply", "reason"), SILENT)
def test_what_states_no_rating_has_its_reason(reply: str, reason: str) -> None:
    reading = read_rating(reply, FIVE)
    assert (reading.value, reading.reason) == (None, reason)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        *((word, 1) for word in ("Ja", "Sí.", "Oui, le fait est cité.", "是", "答案：是", "Verdict: yes")),
        *((word, 0) for word in ("Nein.", "Non", "否。", "The answer is no.", "No, it names 3 facts.")),
        ('{"answer": true}', 1),
        ('{"answer": "no"}', 0),
        ("I'd say yes.", 1),
    ],
)
def test_yes_and_no_in_other_words(reply: str, value: float) -> None:
    assert read_rating(reply, BINARY).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("B", 2),
        ("c)", 3),
        ("Grade: B", 2),
        ("Answer: (D) because it has 2 errors.", 4),
        ("D. There are 5 errors.", 4),
        ("The text is clear.\n\nOption E", 5),
        ("A: 1 error\nAnswer: C", 3),
        ("Respuesta: C", 3),
        ("答案：D", 4),
        ("3", 3),
        ("H", None),
        ("Rating: A good summary", None),
    ],
)
def test_letters_count_from_the_low_end_where_they_were_offered(reply: str, value: float | None) -> None:
    assert read_rating(reply, FIVE, letters=True).value == value


def test_without_the_offer_a_number_goes_before_a_letter() -> None:
    assert read_rating("Option B has 2 errors. Score: 4", FIVE).value == 4


@given(value=st.integers(1, 5), depth=st.integers(0, 30), name=st.sampled_from(["score", "Final Rating", "coherence"]))
def test_json_of_any_depth_is_read_back(value: int, depth: int, name: str) -> None:
    body: dict[str, object] = {"reason": "a 5 would need 2 sources", name: value}
    for _ in range(depth):
        body = {"part": body}
    assert read_rating(json.dumps(body), FIVE, "coherence").value == value
    assert read_rating(f"Here:\n```json\n{json.dumps(body, indent=1)}\n```", FIVE, "coherence").value == value


@given(
    value=st.integers(1, 5),
    form=st.sampled_from(["{n}", "Score: {n}", "评分：{n}", "{n}/5", "Note : {n}", "Rating: {n}.0"]),
)
def test_full_width_digits_are_read_back(value: int, form: str) -> None:
    assert read_rating(form.format(n=chr(ord("０") + value)), FIVE).value == value


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
