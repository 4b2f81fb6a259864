"""`sample_data/make.py` and its recipe: the committed bytes, and what the operations promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

NAMES = (
    "summaries.jsonl",
    "dialogue.jsonl",
    "data_to_text.csv",
    "newer/summaries_second_batch.jsonl",
    "newer/summaries_new_systems.jsonl",
)


def run_make(repository: Path, out: Path, *options: str) -> None:
    command = [sys.executable, str(repository / "sample_data" / "make.py"), "--out", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def test_the_script_reproduces_the_committed_files(repository: Path, tmp_path: Path) -> None:
    run_make(repository, tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == set(NAMES)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (repository / "sample_data" / name).read_bytes(), name


def test_another_seed_makes_other_files(repository: Path, tmp_path: Path) -> None:
    run_make(repository, tmp_path, "--seed", "1")
    for name in NAMES:
        assert (tmp_path / name).read_bytes() != (repository / "sample_data" / name).read_bytes(), name


@pytest.fixture
def wording(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(repository / "sample_data"))
    from recipe import wording

    return wording


@pytest.fixture
def ratings(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(repository / "sample_data"))
    from recipe import ratings

    return ratings


class FixedRandom:
    """Stands in for `random.Random`: no shuffling, no noise, the first choice, a settable `random()`."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value

    def gauss(self, mu: float, _: float) -> float:
        return mu

    def shuffle(self, _: list[object]) -> None:
        return None

    def choice(self, options: list[str]) -> str:
        return options[0]


def test_a_swapped_number_is_another_of_the_article(wording: ModuleType) -> None:
    # "22" is the only number; of the others only "30" has two digits and is not in the text.
    text = wording.swap_number("It adds 22 minutes.", ["1,900", "22", "30", "6.2"], FixedRandom(0.0))
    assert text == "It adds 30 minutes."
    assert wording.swap_number("It adds 22 minutes.", ["1,900", "22"], FixedRandom(0.0)) is None


def test_a_misstated_number_is_new(wording: ModuleType) -> None:
    # Digits are tried from 1; "12" is known, so the first left is 2 -> "22" is the number itself, known too -> "32".
    assert wording.misstate_number("22 minutes", ["12", "22"], FixedRandom(0.0)) == "32 minutes"
    assert wording.misstate_number("no number", [], FixedRandom(0.0)) is None


def test_garbling_drops_function_words_and_keeps_content_words(wording: ModuleType) -> None:
    # With random() = 0 < share every word of the lists is hit: "the", "of" go, "was" becomes "were".
    assert wording.garble("the loss of salt was heavy", FixedRandom(0.0), share=0.5) == "loss salt were heavy"
    assert wording.garble("the loss of salt", FixedRandom(0.9), share=0.5) == "the loss of salt"


def test_sentences_keep_decimals_and_times_whole(wording: ModuleType) -> None:
    text = "It cost 6.2 million. Who paid? Nobody at 21:40!"
    assert wording.sentences(text) == ["It cost 6.2 million.", "Who paid?", "Nobody at 21:40!"]


def test_more_damage_never_raises_a_rating_and_hidden_damage_can_be_overlooked(ratings: ModuleType) -> None:
    scales = {"consistency": ratings.RatingScale(1, 5)}
    hidden = ratings.Damage("false", {"consistency": 0.5}, hidden=True)
    whole = ratings.Written("text", ())
    spoilt = ratings.Written("text", (hidden,))
    # Undamaged: .94 + leniency (.04, -.06, .01) -> .98, .88, .95 -> 1 + 4x = 4.92, 4.52, 4.80 -> 5, 5, 5.
    assert ratings.rate(whole, scales, FixedRandom(0.0)) == {"consistency": [5, 5, 5]}
    # Noticed by all (0 < attention): .47 + leniency -> .51, .41, .48 -> 3.04, 2.64, 2.92 -> 3, 3, 3.
    assert ratings.rate(spoilt, scales, FixedRandom(0.0)) == {"consistency": [3, 3, 3]}
    # random() = .85: only the first annotator (attention .9) notices.
    assert ratings.rate(spoilt, scales, FixedRandom(0.85)) == {"consistency": [3, 5, 5]}
