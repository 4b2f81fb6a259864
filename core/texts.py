"""Texts in any script: whether there is anything to read, the words, and the length."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9fe"  # Burmese
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u0f00-\u0fff\ua980-\ua9df"  # Tibetan, Javanese
    "\u1950-\u19df\u1a20-\u1aad"  # Tai Le, New Tai Lue, Tai Tham
    "\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Bopomofo, Han
    "\U00020000-\U0003ffff"  # Han beyond the first plane
)
"""Scripts that put no spaces between words."""

_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that show nothing although their category is that of a letter, a mark or a symbol."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: only white space, control, format and other invisible characters."""
    if not text or text.isspace():
        return True
    if text[0].isalnum() and text[0].isascii():  # nearly every text that is not blank
        return False
    return all(
        char.isspace()
        or char in _INVISIBLE
        or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp")
        or "\ufe00" <= char <= "\ufe0f"  # variation selectors
        for char in text
    )


def visible_name(text: str) -> str:
    """A name without the characters that show nothing, trimmed: two names that look alike are then equal.

    For names of columns, aspects, ids, raters and projects; the joiners within emoji stay.
    """
    if text.isascii():
        return text.strip()
    shown = ""
    for char in text:
        joins_emoji = char == "\u200d" and shown != "" and unicodedata.category(shown[-1]) in ("So", "Sk", "Mn")
        if char not in _INVISIBLE and (unicodedata.category(char) != "Cf" or joins_emoji):
            shown += char
    return shown.strip()


def words_of(text: str) -> list[str]:
    """Words as they stand, without punctuation; each character of a script without spaces is a word of its own.

    >>> words_of("Don't panic: 你好 Straße")
    ["Don't", 'panic', '你', '好', 'Straße']
    """
    return _patterns()[0].findall(text)


def text_length(text: str) -> int:
    """Length in words between white space; each character of a script without spaces counts as one word.

    >>> [text_length(text) for text in ("a well-known town", "你好，世界", "GPT-4 是 模型")]
    [3, 4, 4]
    """
    if text.isascii() or not _HAS_UNSPACED.search(text):
        return len(text.split())
    return sum(any(map(str.isalnum, piece)) for piece in with_spaces(text).split())


def is_unspaced(text: str) -> bool:
    """Whether most of a text is written in a script without spaces."""
    return not text.isascii() and 2 * len(_HAS_UNSPACED.findall(text)) > text_length(text)


def with_spaces(text: str) -> str:
    """`text` with spaces around each character of a script without spaces, for tools that split at spaces."""
    if text.isascii() or not _HAS_UNSPACED.search(text):
        return text
    return _patterns()[1].sub(r" \g<0> ", text)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A word, and a character of a script without spaces with the marks on it."""
    # Vowel signs and accents that combine belong to the character before them, but `\w` does not match them.
    marks = "".join(map(chr, filter(lambda code: unicodedata.category(chr(code))[0] == "M", range(0x300, 0x1F000))))
    marks = f"{re.escape(marks)}\u00ad\u200c\u200d"
    letter = rf"[^\W_{_UNSPACED}]"
    within = rf"(?:{letter}|[{marks}])*"
    character = rf"(?=\w)[{_UNSPACED}][{marks}]*"
    return re.compile(rf"{character}|{letter}{within}(?:['’]{letter}{within})*"), re.compile(character)
