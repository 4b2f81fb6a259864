"""The word diff loses nothing and marks what changed; a share is written in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.word_diff import word_diff
from core.wording import duration, judge_words, money, percent

ROOT = Path(__file__).resolve().parents[2]
OTHER_WAY = re.compile(r":\.\d%\}|\d%(?![\w(;}])|[\"', ]p [<=] \.\d+")
"""Of writing a share ("44%", ``{share:.0%}``) or a p ("p < .05")."""

texts = st.text(alphabet="ab .\n", max_size=60)


@given(texts, texts)
def test_the_pieces_spell_both_versions(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    assert "".join(p.text for p in pieces if p.change != "added") == old
    assert "".join(p.text for p in pieces if p.change != "removed") == new


@pytest.mark.parametrize(
    ("share", "digits", "words"),
    [
        (None, 0, "—"),
        (0.0, 0, "0 %"),
        (0.004, 0, "under 1 %"),
        (0.44, 0, "44 %"),
        (0.996, 0, "over 99 %"),
        (1.0, 0, "100 %"),
        (0.0004, 1, "under 0.1 %"),
        (0.0312, 1, "3.1 %"),
        (-0.08, 0, "−8 %"),
    ],
)
def test_a_share_says_neither_nothing_nor_all_of_what_is_some(share: float | None, digits: int, words: str) -> None:
    assert percent(share, digits) == words


def test_shares_and_p_are_written_in_one_way_everywhere() -> None:
    files = [*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py"), *ROOT.glob("core/**/*.html")]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if OTHER_WAY.search(line)
    ]
    assert not found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (judge_words("offline"), "offline"),
        (judge_words("openai:gpt-x@http://host/v1"), "gpt-x"),
        (judge_words("recorded:sample_data/recorded/session.jsonl"), "recorded replies, session"),
        (judge_words("hf:/models/some-model"), "some-model"),
        (judge_words("scripted:newsroom"), "Simulated reader"),
        (duration(None), "—"),
        (duration(89), "89 s"),
        (duration(7500), "2 h 5 min"),
        (duration(400_000), "4 days"),
        (money(None), "—"),
        (money(0.0123), "$0.0123"),
        (money(1234.5), "$1,234.50"),
    ],
)
def test_judges_durations_and_money_in_words(said: str, words: str) -> None:
    assert said == words
