"""The report drawn: one self-contained HTML page, Markdown for a wiki, and a CSV of every figure.  Pure.

::

    page.html_page(report) -> str          no script, no request to anywhere, prints on A4
    markdown.markdown_page(report) -> str
    rows.figures_csv(report) -> str        one figure a row: what, statistic, level, side, value, low, high, n
    headline.headline(report) -> Headline  the result in a sentence that can be read aloud
    limits.limits(report) -> (Limit, …)    what makes it weaker than it looks, computed from the facts

Texts of people and models are hostile until escaped: every renderer escapes and shortens them.
`figures` are the plotly figures of the screens; they need nothing of the rest.
"""
