"""The report drawn: one self-contained HTML page, Markdown for a wiki, and a CSV of every figure.  Pure.

::

    html_page(report) -> str          no script, no request to anywhere, prints on A4
    markdown_page(report) -> str
    figures_csv(report) -> str        one figure a row: what, statistic, level, side, value, low, high, n
    headline(report) -> Headline      the result in a sentence that can be read aloud
    limits(report) -> (Limit, …)      what makes it weaker than it looks, computed from the facts

Texts of people and models are hostile until escaped: every renderer escapes and shortens them.
"""

from core.report.headline import Headline, headline
from core.report.limits import Limit, limits
from core.report.markdown import markdown_page
from core.report.page import html_page
from core.report.rows import figures_csv

__all__ = ["Headline", "Limit", "figures_csv", "headline", "html_page", "limits", "markdown_page"]
