"""Word lists of the text features (`lexicon.yaml`): closed classes of English and a few cues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def table(name: str) -> Any:
    """The data file `name`.yaml that stands beside this module."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe


_LISTS: dict[str, Any] = table("lexicon")


def words(*names: str) -> frozenset[str]:
    """The words of all these lists."""
    return frozenset(word for name in names for word in _LISTS[name].split())


def _phrases(name: str) -> tuple[str, ...]:
    return tuple(_LISTS[name].split(", "))


THIRD_PERSON, FIRST_PERSON, SECOND_PERSON = words("third_person"), words("first_person"), words("second_person")
NEGATIONS, QUESTION_WORDS, CONNECTIVES = words("negations"), words("question_words"), words("connectives")
OPINIONS, GREETINGS, JUNK_TOKENS = words("opinions"), words("greetings"), words("junk_tokens")
ABBREVIATIONS, AUXILIARIES = words("abbreviations"), words("auxiliaries")
FUNCTION_WORDS = (
    words("articles", "third_person", "first_person", "second_person", "demonstratives", "prepositions")
    | words("conjunctions", "auxiliaries", "negations", "question_words", "other_function_words")
)  # fmt: skip
OPENERS_THAT_LEAN_BACK = words("third_person", "leaning_back") - {"it"}
DANGLING_ENDS = words("articles", "prepositions", "conjunctions", "auxiliaries", "dangling") - words("not_dangling")
NON_COMMITTAL = _phrases("non_committal")
PLACEHOLDER_VALUES = frozenset({"", *_phrases("placeholder_values")})
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_LISTS["number_words"].split())}
CLASHES = [(frozenset(left.split()), frozenset(right.split())) for left, right in _LISTS["clashes"].items()]
"""Words and what hardly ever follows one of them."""
