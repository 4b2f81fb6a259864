"""The report as one page, its appendix as another: HTML without script or request, every foreign text escaped and
bounded; and as Markdown for a wiki: the page's own words, read out of its HTML, without the drawings.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.findings.system_quality import means_finding, preferences_finding
from core.findings.weak_spots import bias_finding, distribution_words, examination_finding, sureness_finding
from core.report import plots, words
from core.report.facts import History, Report
from core.report.figures import Drawing
from core.report.figures.bars import distribution_figure
from core.report.figures.whiskers import parts_figure
from core.report.headline import WEAK, asides, bar, better_system, brings, headline, limits, sign_off, standing
from core.stats.preferences import Strength
from core.word_diff import Piece, word_diff
from core.wording import VERSION_ORIGINS, VERSION_STATES

_FOLDER = Path(__file__).parent / "templates"
_MOST_LIMITS, _MOST_FOLLOWED, _FOLLOWED_LETTERS = 4, 3, 540
"""Of the one page; the appendix has all."""
_LONGEST_DIFF = 6_000
"""Characters of two texts whose changes are still worth finding; longer ones are shown as they are."""
_MARKUP = re.compile(r"(\[[−+\d.-]+, [−+\d.-]+\](?![(\[:]))|([\\`*_{}\[\]>#|~!&$^]|<(?! 0\.\d))")
"""What Markdown would take for markup; an interval is none, nor is "< 0.001"."""
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)
_STARTS = re.compile(r"^(\s*\d*)(?=[-+=:.)])")
_JOINER = "\u2060"
"""Neither seen nor a place to break a line: parts what would become a link."""
_NOT_IN_CODE = str.maketrans("`|\n", "   ")


def html_page(report: Report) -> str:
    """The report in about 600 words: what was judged, the finding, what limits it, who signed it off, how to use it.

    A whole HTML document that opens from a file, prints on A4 and asks nobody for anything.
    """
    known = limits(report)
    return _rendered(
        "report.html",
        report,
        limits=known[:_MOST_LIMITS],
        n_more=len(known[_MOST_LIMITS:]),
        brings=brings(report),
        better=better_system(report),
        sign_off=sign_off(report),
        followed=_followed(report.history),
        plot=plots.sides_plot(report),
        error=_error(report),
    )


def appendix_page(report: Report) -> str:
    """Everything behind the report, as a document of its own of well under 5 MB."""
    values, curve, sure = report.sources.values, report.on_the_scale.curve, report.on_the_scale.sure
    spread = report.examination.distribution
    return _rendered(
        "appendix.html",
        report,
        limits=limits(report),
        plots=_plots(report),
        diffs=_changes(report.history),
        most_judges=plots.MOST_JUDGES,
        means=means_finding(report.means, words.bounded(report.aspect, 80)),
        preferred=None if report.strengths is None else preferences_finding(report.strengths),
        examination=examination_finding(report.examination),
        biases=[bias_finding(bias) for bias in report.examination.biases],
        spread_words=None if spread is None else distribution_words(spread),
        sure=None if sure is None else sureness_finding(sure),
        asides=asides(report),
        strength_by_judge=_by_judge(report),
        bar=bar(report),
        quarter=np.quantile(values, (0.25, 0.5, 0.75)).tolist() if values else [],
        below=sum(value < 0 for value in values),
        before=curve.before if curve else None,
        after=curve.after if curve else None,
        free=all(line.usage.requests + line.usage.cached == 0 for line in report.costs),
    )


def _by_judge(report: Report) -> dict[str, Strength]:
    """The strength of each system by the judge's preferences."""
    found = None if report.strengths is None else report.strengths.by_judge
    return {} if found is None else {strength.system: strength for strength in found.systems}


def _rendered(template: str, report: Report, **more: Any) -> str:
    return document(
        template,
        r=report,
        head=headline(report),
        weak=standing(report) in WEAK,
        origin=words.ORIGIN_WORDS,
        made=VERSION_ORIGINS,
        state=VERSION_STATES,
        kind=words.KIND_WORDS[report.golden.kind],
        **more,
    )


def document(template: str, **more: Any) -> str:
    """A template of this package as a whole HTML document, without script or request."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    return _environment().get_template(template).render(css=css, policy=_policy(css), **more)


def _followed(history: History) -> list[tuple[str, str]]:
    """The name and the opening words of what the judge follows; the more sets of criteria, the fewer of each."""
    shown = history.chosen[:_MOST_FOLLOWED]
    room = _FOLLOWED_LETTERS // max(1, len(shown))
    openings = [shorten(fact.criteria.text, room) for fact in shown]
    return [(fact.name, opening) for fact, opening in zip(shown, openings, strict=True)]


def shorten(text: str, room: int) -> str:
    """The opening of `text` in at most `room` characters, cut between words, lines kept."""
    if len(text) <= room:
        return text
    return re.sub(r"\s+\S*$", "", text[:room]) + " …"


def _error(report: Report) -> float | None:
    """Points that a score as the judge file gives it lies from people's labels on average, held-out; None unknown."""
    curve = report.on_the_scale.curve
    errors = None if curve is None else curve.after or curve.before
    return None if errors is None else errors.mae


def _changes(history: History) -> Mapping[str, tuple[Piece, ...]]:
    """Criteria id → what changed since its first parent, for those whose parent stands in the history too."""
    texts = {fact.criteria_id: fact.criteria.text for fact in history.criteria}
    changes = {}
    for fact in history.criteria:
        text, parents = fact.criteria.text, fact.criteria.parents
        parent = next((texts[name] for name in parents if name in texts), None)
        if parent is not None and max(len(parent), len(text)) <= _LONGEST_DIFF:
            changes[fact.criteria_id] = word_diff(parent, text)
    return changes


def _plots(report: Report) -> Mapping[str, Drawing]:
    drawn = {"sides": plots.sides_plot(report), "labels": plots.labels_plot(report.labels)}
    if not report.judges.board.problem:
        drawn["judges"] = plots.judges_plot(report)
    if report.systems:
        drawn["systems"] = plots.systems_plot(report)
    if report.sources.values:
        drawn["sources"] = plots.sources_plot(report.sources)
    if report.on_the_scale.n:
        drawn["scores"] = plots.scores_plot(report.on_the_scale, report.scale)
    if report.examination.parts:
        drawn["parts"] = parts_figure(report.examination, width=plots.WIDTH)
    if report.examination.distribution is not None:
        drawn["distribution"] = distribution_figure(report.examination.distribution, width=plots.WIDTH)
    if report.on_the_scale.sure and report.on_the_scale.sure.kept:
        drawn["kept"] = plots.kept_plot(report.on_the_scale.sure)
    return drawn


def _policy(css: str) -> str:
    """Nothing may load or run; the one style sheet is named by its hash."""
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(words.FILTERS)
    return environment


# ── for a wiki ───────────────────────────────────────────────────────────────────────────────────────────────


def markdown_page(page: str) -> str:
    """The report's page (`html_page`), whose body is well-formed XML but for its line breaks, as CommonMark.

    Whatever the page escapes is a letter here too: no text of people, models or files becomes markup, HTML or a link.
    """
    body = page[page.index("<body>") : page.index("</html>")].replace("<br>", "<br/>")
    body = words.bounded(body, len(body))  # without characters that no XML may hold
    lines = _blocks(fromstring(body))  # noqa: S314  # our own page, not a stranger's file
    return "\n".join(lines).rstrip("\n") + "\n"


def fenced(text: str) -> list[str]:
    """Text of several lines as a code block whose fence the text cannot close."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.split("\n"), fence, ""]


def _letters(text: str) -> str:
    return _MARKUP.sub(lambda match: match[1] or f"\\{match[2]}", _LINKS.sub(_JOINER, text))


def _line(text: str) -> str:
    """`text` at the start of a line, where more would be markup."""
    return _STARTS.sub(r"\1\\", text)


def _text_of(node: Element) -> str:
    """What stands in `node`, on one line."""
    parts = [_letters(node.text or "")]
    for child in node:
        inside = _text_of(child)
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
            yield from (f"{'#' * int(node.tag[1])} {_text_of(node)}", "")
        case "p":
            finding = "said" in node.get("class", "")
            yield from (f"**{_text_of(node)}**" if finding else _line(_text_of(node)), "")
        case "table":
            yield from _table(node)
        case "ul" | "ol":
            for item in node:
                yield from _item(item)
            yield ""
        case "dl":
            for term, definition in zip(node.iter("dt"), node.iter("dd"), strict=True):
                yield f"- **{_text_of(term)}**: {_text_of(definition)}"
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
    rows = [[_text_of(cell) for cell in row] for row in table.iter("tr")]
    for cells, row in zip(rows, table.iter("tr"), strict=True):
        if row.get("class") == "ours":
            cells[0] = f"**{cells[0]}**"
    rows.insert(1, ["---"] * len(rows[0]))
    yield from (_line(_text_of(caption)) for caption in table.iter("caption"))
    yield from ("", *(f"| {' | '.join(cells)} |" for cells in rows), "")


def _item(item: Element) -> Iterator[str]:
    """A list item: its words, then its blocks further in."""
    texts = [child for child in item if child.tag == "div"]
    for text in texts:
        item.remove(text)
    yield f"- {_line(_text_of(item))}"
    for line in [line for text in texts for line in ("", *_blocks(text))]:
        yield f"  {line}".rstrip()


def _changed(node: Element) -> str:
    """A text as it stands; what was added and removed in the signs of a word diff."""
    signs = {"ins": ("{+", "+}"), "del": ("[-", "-]")}
    pieces = [(child.text or "").join(signs[child.tag]) + (child.tail or "") for child in node]
    return "".join([node.text or "", *pieces])
