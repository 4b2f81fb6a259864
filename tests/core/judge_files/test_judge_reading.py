"""Judge files off the disk: what comes back, what is refused before it can cost anything, the digest, the version."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from core import load_judge
from core.errors import JudgeError
from core.judge_files.documents import (
    MOST_BYTES,
    MOST_DEPTH,
    is_as_exported,
    parsed,
    read_card,
)
from core.judge_files.judge_writing import sealed, yaml_text

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join([f'*{chr(97 + k)}'] * 9)}]\n" for k in range(20)
)


def written(tmp_path: Path, data: bytes | str) -> Path:
    path = tmp_path / "judge.yaml"
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "isn't a judge file"),
        ("a: [1, 2", "isn't valid YAML"),
        ("a: 1\n---\nb: 2", "isn't valid YAML"),
        ("!!python/object/apply:os.system ['true']", "isn't valid YAML"),
        (BOMB, "alias"),
        ("base: &b {x: 1}\nother:\n  <<: *b\n", "alias"),
        ("a: " + "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "levels"),
        ('{"a": ' + "[" * 100_000, "nested too deeply|isn't a valid judge file"),
        ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested more than"),
        ("a: 1\nb: 2\na: 3", "repeats the key 'a'"),
        ('{"a": 1, "a": 2}', "contains the same key twice"),
        ("a: .nan", "a isn't a finite number"),
        ("a: {b: [1, .inf]}", r"a\.b\[1\] isn't a finite number"),
        ('{"a": 1e999}', "a isn't a finite number"),
        (f"a: {'9' * 400}", "a isn't a finite number"),
        ("a: !!binary aGk=", "a is a bytes"),
        ("a: !!set {x, y}", "a is a set"),
        ("1: x", "the key 1"),
        ('{"a": "\\ud800"}', "surrogates not allowed"),
    ],
)
def test_what_no_judge_file_holds_is_refused(text: str, words: str) -> None:
    with pytest.raises(JudgeError, match=words):
        parsed(text, "judge.yaml")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="isn't UTF-8 text"):
        read_card(written(tmp_path, b"a: \xff\xfe"))
    with pytest.raises(JudgeError, match="can't read"):
        read_card(tmp_path / "gone.yaml")
    with pytest.raises(JudgeError, match="can't read"):
        read_card(tmp_path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(JudgeError, match="too large for a judge file"):
        read_card(path)


def test_dates_stay_texts_and_json_is_read_too() -> None:
    dates = {"a": "2026-11-22", "b": "2026-11-22T10:00:00Z"}
    assert parsed("a: 2026-11-22\nb: 2026-11-22T10:00:00Z", "f") == dates
    assert parsed(' {"a": [1, 1.5, true, null, "x"]}', "f") == {"a": [1, 1.5, True, None, "x"]}


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e300, 1e300) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=120)
@given(card=st.dictionaries(texts, values, max_size=5))
def test_what_is_written_comes_back_and_fits_its_digest(card: Any) -> None:
    whole = sealed(card | {"format": "x"})
    document = parsed(yaml_text(whole), "round.yaml")
    assert document == whole
    assert is_as_exported(document)


def test_the_digest_sees_content_and_not_form(offline_card: dict[str, Any]) -> None:
    assert is_as_exported(offline_card)
    assert is_as_exported(json.loads(json.dumps(offline_card)))
    assert is_as_exported(yaml.safe_load(yaml.safe_dump(offline_card, sort_keys=True)))
    whole = copy.deepcopy(offline_card)
    whole["task"]["scale"] = {"high": 5, "low": 1, "step": 1}  # was 1.0 to 5.0
    assert is_as_exported(whole)
    whole["task"]["scale"]["low"] = 0
    assert not is_as_exported(whole)


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("version", "words"),
    [(4, "newer version of Concord. Update"), (99, "export the judge again")]
    + [(version, f"version {version!r} isn't supported") for version in (0, -1, True, "2", 1.0, None)],
)
def test_other_versions_are_refused(offline_card: dict[str, Any], write_card: Any, version: Any, words: str) -> None:
    path = write_card(offline_card | {"version": version})
    with pytest.raises(JudgeError, match=words):
        load_judge(path, accept_edited=True)
