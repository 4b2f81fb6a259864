"""Newsroom's human evaluation: 60 articles × 7 systems, three crowd ratings of 1 to 5 an aspect, one rating a row."""

from __future__ import annotations

import html
import re

from core.data.public_sets.reading import Fields
from core.data.public_sets.rows import Converted, Ids, Parts, Row, mean, slug

ASPECTS = ("coherence", "fluency", "informativeness", "relevance")
_PARAGRAPH = re.compile(r"(?:\s*</?p>\s*)+", re.IGNORECASE)


def convert(parts: Parts) -> Converted:
    """Rows from the ``ratings`` CSV; the raters are not named in it."""
    groups: dict[tuple[str, str], list[Fields]] = {}
    for given in parts["ratings"]:
        groups.setdefault((given.name("ArticleID"), given.name("System")), []).append(given)
    ids = Ids("nr")
    return Converted([_row(article, system, given, ids) for (article, system), given in groups.items()])


def _row(article: str, system: str, given: list[Fields], ids: Ids) -> Row:
    first, source_id, system_id = given[0], ids.source(article), slug(system)
    for other in given[1:]:
        for name in ("ArticleText", "SystemSummary"):
            if other.text(name) != first.text(name):
                raise other.error(f"the text differs from that of row {first.row}, same article and system.", name)
    ratings = {a: [one.number(f"{a.capitalize()}Rating", 1, 5) for one in given] for a in ASPECTS}
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "doc_id": article,
        "title": _plain(first.text("ArticleTitle")),
        "source": _plain(first.text("ArticleText")),
        "target": _plain(first.text("SystemSummary")),
        **{f"human_{aspect}": mean(values) for aspect, values in ratings.items()},
        **{f"ann_{aspect}": values for aspect, values in ratings.items()},
    }


def _plain(text: str) -> str:
    """The file is encoded for a web page: entities back to characters, paragraph marks to line breaks."""
    return _PARAGRAPH.sub("\n", html.unescape(text)).strip()
