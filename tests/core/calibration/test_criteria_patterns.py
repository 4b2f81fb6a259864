"""Holistic or specific, on texts written for this test as language models write criteria."""

from __future__ import annotations

import pytest

from core.calibration.criteria_patterns import pattern_of
from core.records import Scale

ONE_TO_FIVE = Scale(1, 5, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "5: flows.\n4: mostly flows.\n3: halting.\n2: jumpy.\n1: a heap of sentences.",
        "**Score 5** - every sentence follows.\n**Score 3** - some do.\n**Score 1** - none does.",
        "A rating of 2 is for gaps. A rating of 4 goes to small slips. A rating of 5 means none.",
        "High (4-5): ordered.\nLow (1-2): disordered.",
        "4 to 5: ordered\n1 to 2: disordered",
        "| 5 | ordered |\n| 4 | nearly |\n| 2 | hardly |",
        "1) Score 5: ordered\n2) Score 3: halting\n3) Score 1: a heap",
        "Give a 5 when all follows. Give a 3 if some does. Give a 1 otherwise.",
        "1 = poor, 2 = weak, 3 = fair",
        "5/5: ordered\n3/5: halting\n1/5: a heap",
        "- **5 (Excellent)**: ordered\n- **4 (Good)**: nearly\n- **3**: halting",
        "### 5 points\nAll follows.\n### 3 points\nSome does.\n### 1 point\nNone does.",
        "Rating: 5 - all.\nRating: 4 - most.\nRating: 1 - none.",
        "A text with a score of 5 should flow. A text with a score of 3 should hold together. A score of 1: a heap.",
        "- A text that flows gets a 5.\n- A text with slips gets a 4 or 4.5.\n- A heap gets a 1 or 2.",
        "A possible rubric is: - 5: flows. - 4: mostly flows.- Score 3 if it halts.",
    ],
)
def test_a_line_for_half_of_the_steps_is_a_rubric(text: str) -> None:
    assert pattern_of(text, ONE_TO_FIVE) == "specific"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Reward texts whose sentences follow from each other; punish jumps.",
        "1. Read the source.\n2. Read the text.\n3. Compare them.\n4. Look for jumps.\n5. Rate.",  # a numbered list
        "Rate from 1 to 5. Good texts flow.",
        "Score 1-5: the better the order, the higher.",  # names the scale
        "5: the best.\nEverything else depends on order.",  # one line of five
        "5: the best.\n4: nearly.\nEverything else lower.",  # two of five are less than half
        "7: off the scale.\n8: too.\n9: too.",
        "Texts with 2 or 3 slips may still be good; 4 is many.",
        "The score of order ranges from 1 to 5, where 1 is the lowest. Texts get better with each link.",
    ],
)
def test_all_else_is_holistic(text: str) -> None:
    assert pattern_of(text, ONE_TO_FIVE) == "holistic"


def test_steps_follow_the_scale() -> None:
    two = "1: supported by the source.\n0: not supported."
    assert pattern_of(two, Scale(0, 1)) == "specific"
    assert pattern_of("1: supported by the source.", Scale(0, 1)) == "holistic"  # one line is no rubric
    assert pattern_of("-2: bad\n-1: weak\n0: fair", Scale(-2, 2)) == "specific"
    halves = "5: a\n4: b\n3: c"
    assert pattern_of(halves, Scale(1, 5, 0.5)) == "specific"  # whole numbers are the steps, whatever lies between


def test_a_long_scale_counts_in_fifths() -> None:
    """0-100 has the parts [0, 20), [20, 40), [40, 60), [60, 80), [80, 100]; three of them are needed."""
    assert pattern_of("0: none\n50: half\n100: all", Scale(0, 100)) == "specific"
    assert pattern_of("80-100: good\n0-19: bad", Scale(0, 100)) == "holistic"
    assert pattern_of("60-100: good\n0-19: bad", Scale(0, 100)) == "specific"
    assert pattern_of("95: a\n97: b\n99: c", Scale(0, 100)) == "holistic"  # three lines in one part


def test_white_space_and_marks_of_markdown_change_nothing() -> None:
    plain = "Score 5: a\nScore 3: b\nScore 1: c"
    marked = "  > **Score 5**: a\n\n - _Score 3_: b\n * `Score 1`: c"
    assert pattern_of(plain, ONE_TO_FIVE) == pattern_of(marked, ONE_TO_FIVE) == "specific"
