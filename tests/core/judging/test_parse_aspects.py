"""Reading several aspects out of one reply: each by itself, none from the words about another."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.judging.parse_aspects import read_aspects
from core.judging.render import together_heading
from core.providers.base import Completion, Failure
from core.records import Scale, Task, Usage

ONE_TO_FIVE, YES_NO, HUNDRED = Scale(1, 5, 1.0), Scale(0, 1, 1.0), Scale(0, 100)
COHERENCE, FLUENCY = Task("coherence", "single", ONE_TO_FIVE), Task("fluency", "single", ONE_TO_FIVE)
LOCAL = Task("local coherence", "single", ONE_TO_FIVE)
TASKS = (COHERENCE, FLUENCY, LOCAL)


def values(text: str, tasks: tuple[Task, ...] = TASKS, finish: str = "stop") -> list[float | str | None]:
    """The rating of each aspect, or the reason why there is none."""
    read = read_aspects(Completion(text, finish, Usage()), tasks)
    return [each.reading.reason if each.reading.value is None else each.reading.value for each in read]


AS_ASKED = """Aspect 1: coherence
Score: 4
Reasons: One thought leads to the next; a 5 would need a better close.

Aspect 2: fluency
Score: 2
Reasons: "Them was" in line 2.

Aspect 3: local coherence
Score: 5
Reasons: Neighbouring sentences fit."""


@pytest.mark.parametrize(
    "text",
    [
        AS_ASKED,
        AS_ASKED.replace("Aspect ", "**Aspect ")
        .replace("coherence\n", "coherence**\n")
        .replace("fluency\n", "fluency**\n"),
        AS_ASKED.replace("Aspect ", "### Aspect ").replace("Score: ", "- **Score**: "),
        AS_ASKED.replace("coherence", "Coherence").replace("fluency", "FLUENCY"),
        AS_ASKED.replace("Aspect 1: coherence\n", "Aspect 1\n").replace("Aspect 2: fluency", "Aspect 2:"),
        AS_ASKED.replace("\nScore: ", " - Score: "),
        "Aspect 3: local coherence\nScore: 5\n\nAspect 1: coherence\nScore: 4\n\nAspect 2: fluency\nScore: 2",
        "Aspect 1: 4\nAspect 2: 2\nAspect 3: 5",
        "Aspect 1: coherence: 4\nAspect 2: fluency: 2/5\nAspect 3: local coherence: 5",
        "Coherence: 4\nFluency: 2\nLocal coherence: 5",
        "1. Coherence\nScore: 4\n\n2. Fluency\nScore: 2\n\n3. Local coherence\nScore: 5",
        "- **Coherence** (4/5): it flows\n- **Fluency** (2/5): errors\n- **Local coherence** (5/5)",
        "| Aspect | Score | Why |\n| --- | --- | --- |\n| coherence | 4 | flows |\n| fluency | 2 | errors |\n"
        "| local coherence | 5 | fits |",
        '{"aspect_1": {"score": 4, "reasons": "a 5 would …"}, "aspect_2": {"score": 2}, "aspect_3": {"score": 5}}',
        '```json\n{"coherence": 4, "fluency": {"rating": 2}, "local_coherence": "5"}\n```',
        'Here it is:\n```\n{"scores": {"Coherence": 4, "Fluency": 2, "Local coherence": 5}}\n```',
        '[{"aspect": "coherence", "score": 4}, {"aspect": "fluency", "score": 2},'
        ' {"aspect": "local coherence", "score": 5}]',
        "<think>Aspect 1: coherence\nScore: 1\n</think>\n" + AS_ASKED,
    ],
)
def test_each_aspect_is_read_in_whatever_dress_it_comes(text: str) -> None:
    assert values(text) == [4, 2, 5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # one is missing: the others stand
        ("Aspect 1: coherence\nScore: 4\n\nAspect 3: local coherence\nScore: 5", [4, "no verdict", 5]),
        ("Aspect 1: coherence\nScore: 4\n\nAspect 2: fluency\nScore: n/a", [4, "no verdict", "no verdict"]),
        # off its scale, alone
        (AS_ASKED.replace("Score: 2", "Score: 7"), [4, "out of range", 5]),
        # two different ratings of one aspect, the same twice
        (AS_ASKED + "\n\nAspect 2: fluency\nScore: 3", [4, "no verdict", 5]),
        (AS_ASKED + "\n\nAspect 2: fluency\nScore: 2", [4, 2, 5]),
        # a heading whose number and name are of two aspects
        (AS_ASKED.replace("Aspect 2: fluency", "Aspect 2: coherence"), [4, "no verdict", 5]),
        # a name that nobody asked for, a number that nobody asked for
        (AS_ASKED.replace("Aspect 2: fluency", "Aspect 2: grammar"), [4, "no verdict", 5]),
        (AS_ASKED.replace("Aspect 2: fluency", "Aspect 7: fluency"), [4, "no verdict", 5]),
        # another aspect's heading in other words ends what was said before it, and gives nobody its number
        ("Aspect 1: coherence\nScore: 4\n\nFluency\nScore: 2", [4, "no verdict", "no verdict"]),
        # an aspect is spoken of within the words on another
        (
            "Aspect 1: coherence\nAnalysis: It flows.\nFluency: not at issue here.\nScore: 4\n\n"
            "Aspect 2: fluency\nAnalysis: Errors.\nScore: 2\n\nAspect 3: local coherence\nScore: 5",
            [4, 2, 5],
        ),
        # a quoted line is the item's, not the judge's
        (AS_ASKED.replace("Reasons: One", "> Aspect 2: fluency\n> Score: 5\nReasons: One"), [4, 2, 5]),
        # one number for all is nobody's
        ("Score: 4", ["no verdict"] * 3),
        ("I cannot rate this text.", ["refused"] * 3),
        ("", ["empty"] * 3),
        # a field twice, null, two names for one aspect that disagree
        ('{"aspect_1": {"score": 4}, "aspect_1": {"score": 5}, "aspect_2": 2, "aspect_3": 5}', ["no verdict"] * 3),
        ('{"aspect_1": {"score": null}, "aspect_2": 2, "aspect_3": true}', ["no verdict", 2, "no verdict"]),
        ('{"aspect_1": 3, "coherence": 4, "aspect_2": 2, "local coherence": 5}', ["no verdict", 2, 5]),
        (
            '{"aspect_1": {"score": 4}, "aspect_2": {"score": 11}, "aspect_3": {"why": "?"}}',
            [4, "out of range", "no verdict"],
        ),
    ],
)
def test_what_could_be_of_two_aspects_is_of_neither(text: str, expected: list[float | str]) -> None:
    assert values(text) == expected


def test_each_aspect_has_its_own_scale() -> None:
    tasks = (COHERENCE, Task("grammatical", "single", YES_NO), Task("overall", "single", HUNDRED))
    text = "Aspect 1: coherence\nScore: 4\n\nAspect 2: grammatical\nScore: yes\n\nAspect 3: overall\nScore: 85"
    assert values(text, tasks) == [4, 1, 85]
    assert values(text.replace("Score: yes", "Score: 85").replace("Score: 4", "Score: 85"), tasks) == [
        "out of range",
        "out of range",
        85,
    ]


def test_a_reply_that_was_cut_off_keeps_what_stands_before_the_cut() -> None:
    at = AS_ASKED.index('"Them was"')
    assert values(AS_ASKED[:at], finish="length") == [4, "truncated", "truncated"]
    assert values('{"aspect_1": {"score": 4}, "aspect_2": {"sc', finish="length") == ["truncated"] * 3
    assert values("<think>so many thoughts", finish="length") == ["truncated"] * 3
    whole = '{"aspect_1": {"score": 4}, "aspect_2": {"score": 2}, "aspect_3": {"score": 5}}'
    assert values(whole, finish="length") == ["truncated"] * 3


def test_words_are_those_on_the_aspect_and_a_failure_is_everybodys() -> None:
    read = read_aspects(Completion(AS_ASKED, "stop", Usage()), TASKS)
    assert read[1].words == 'Score: 2\nReasons: "Them was" in line 2.'
    as_json = '{"aspect_1": {"score": 4, "reasons": "It flows."}}'
    assert read_aspects(Completion(as_json, "stop", Usage()), TASKS)[0].words == "It flows."
    failed = read_aspects(Failure("content filter"), TASKS)
    assert [(each.reading.reason, each.reading.detail) for each in failed] == [("provider error", "content filter")] * 3
    refused = read_aspects(Completion("Aspect 1: coherence\nScore: 4", "refusal", Usage()), TASKS)
    assert {each.reading.reason for each in refused} == {"refused"}


NAMES = st.lists(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20).filter(
        lambda name: any(char.isalpha() for char in name)
    ),
    min_size=2,
    max_size=5,
    unique_by=lambda name: "".join(char for char in name.lower() if char.isalnum()),
)
PROSE = st.lists(
    st.sampled_from(["the plot", "it flows", "weak", "in line", "a better close", "aspect", "of the text"]), max_size=8
).map(" ".join)


@settings(max_examples=30)
@given(st.data(), NAMES)
def test_any_names_in_the_form_that_is_asked_for(data: st.DataObject, names: list[str]) -> None:
    """What the prompt asks for is read to the letter, whichever aspects are left out, in whatever order."""
    tasks = tuple(Task(name, "single", ONE_TO_FIVE) for name in names)
    given_ = data.draw(st.lists(st.integers(1, 5) | st.none(), min_size=len(names), max_size=len(names)))
    order = data.draw(st.permutations(range(len(names))))
    blocks = [
        f"{together_heading(k + 1, tasks[k])}\nScore: {given_[k]}\nReasons: {data.draw(PROSE)}."
        for k in order
        if given_[k] is not None
    ]
    expected = [value if value is not None else "no verdict" for value in given_]
    assert values("\n\n".join(blocks) or "Nothing to say here.", tasks) == expected
    body = {f"aspect_{k + 1}": {"score": given_[k]} for k in order if given_[k] is not None}
    assert values(json.dumps(body), tasks) == expected


@settings(max_examples=50)
@given(st.text(max_size=400), st.integers(0, 3))
def test_no_reply_breaks_the_reader_and_no_rating_comes_from_elsewhere(text: str, cut: int) -> None:
    """Whatever is written beneath, a rating given as asked for stands or falls with its own block."""
    for each in values(text):
        assert isinstance(each, str) or 1 <= float(each) <= 5
    blocks = AS_ASKED.split("\n\n")
    rest = "\n\n".join(block for k, block in enumerate(blocks) if k != cut)
    assert [value for k, value in enumerate(values(rest)) if k != cut] == [
        value for k, value in enumerate([4, 2, 5]) if k != cut
    ]


def test_a_reply_of_headings_alone_is_looked_at_twenty_times_an_aspect() -> None:
    assert values("Aspect 1\n" * 10_000 + "Score: 3") == ["no verdict"] * 3
    assert values("Aspect 1\n" * 19 + "Score: 3")[0] == 3
    assert values("| " * 20_000) == ["no verdict"] * 3
