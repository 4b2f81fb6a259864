"""The report as Markdown, for a wiki: the page's own words, read out of its HTML, without the drawings.

Whatever the page escapes is a letter here too: no text of people, models or files becomes markup, HTML or a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, fromstring

from core.report.words import bounded

_MARKUP = re.compile(r"(\[[−+\d.-]+, [−+\d.-]+\](?![(\[:]))|([\\`*_{}\[\]>#|~!&$^]|<(?! \d))")
"""What Markdown would take for markup; an interval is none, nor is "< 0.001"."""
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)
_STARTS = re.compile(r"^(\s*\d*)(?=[-+=:.)])")
_JOINER = "\u2060"
"""Neither seen nor a place to break a line: parts what would become a link."""
_NOT_IN_CODE = str.maketrans("`|\n", "   ")


def markdown_page(page: str) -> str:
    """The report's page (`html_page`), whose body is well-formed XML but for its line breaks, as CommonMark."""
    body = page[page.index("<body>") : page.index("</html>")].replace("<br>", "<br/>")
    body = bounded(body, len(body))  # without characters that no XML may hold
    lines = _blocks(fromstring(body))  # noqa: S314  # our own page, not a stranger's file
    return "\n".join(lines).rstrip("\n") + "\n"


def fenced(text: str) -> list[str]:
    """Text of several lines as a code block whose fence the text cannot close."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.split("\n"), fence, ""]


def _letters(text: str) -> str:
    return _MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", _LINKS.sub(_JOINER, text))


def _line(words: str) -> str:
    """`words` at the start of a line, where more would be markup."""
    return _STARTS.sub(r"\1\\", words)


def _words(node: Element) -> str:
    """What stands in `node`, on one line."""
    parts = [_letters(node.text or "")]
    for child in node:
        inside = _words(child)
        match child.tag:
            case "strong":
                inside = f"**{inside}**"
            case "code":
                inside = f"`{''.join(child.itertext()).translate(_NOT_IN_CODE)}`"
            case "br":
                inside = " / "
            case "small" if node.tag == "dd":
                inside = f"; {inside}"
        parts += [inside, _letters(child.tail or "")]
    return " ".join("".join(parts).split()).replace(" ; ", "; ")


def _blocks(node: Element) -> Iterator[str]:
    """The lines of `node`, a blank one behind each block."""
    match node.tag:
        case "h1" | "h2" | "h3" if "hidden" not in node.attrib:
            yield from (f"{'#' * int(node.tag[1])} {_words(node)}", "")
        case "p":
            finding = "said" in node.get("class", "")
            yield from (f"**{_words(node)}**" if finding else _line(_words(node)), "")
        case "table":
            yield from _table(node)
        case "ul" | "ol":
            for item in node:
                yield from _item(item)
            yield ""
        case "dl":
            for term, said in zip(node.iter("dt"), node.iter("dd"), strict=True):
                yield f"- **{_words(term)}**: {_words(said)}"
            yield ""
        case "blockquote" | "code":
            yield from fenced("".join(node.itertext()))
        case "div" if "text" in node.get("class", "").split():
            yield from fenced(_changed(node))
        case "body" | "header" | "main" | "section" | "div" | "footer":
            for child in node:
                yield from _blocks(child)


def _table(table: Element) -> Iterator[str]:
    """The caption as a paragraph, then the table; the row of the report's own judge with a bold head."""
    rows = [[_words(cell) for cell in row] for row in table.iter("tr")]
    for cells, row in zip(rows, table.iter("tr"), strict=True):
        if row.get("class") == "ours":
            cells[0] = f"**{cells[0]}**"
    rows.insert(1, ["---"] * len(rows[0]))
    yield from (_line(_words(caption)) for caption in table.iter("caption"))
    yield from ("", *(f"| {' | '.join(cells)} |" for cells in rows), "")


def _item(item: Element) -> Iterator[str]:
    """A list item: its words, then its blocks further in."""
    texts = [child for child in item if child.tag == "div"]
    for text in texts:
        item.remove(text)
    yield f"- {_line(_words(item))}"
    for line in [line for text in texts for line in ("", *_blocks(text))]:
        yield f"  {line}".rstrip()


def _changed(node: Element) -> str:
    """A text as it stands; what was added and removed in the signs of a word diff."""
    signs = {"ins": ("{+", "+}"), "del": ("[-", "-]")}
    pieces = [(child.text or "").join(signs[child.tag]) + (child.tail or "") for child in node]
    return "".join([node.text or "", *pieces])
