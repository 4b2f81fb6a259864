"""Plots put figures where they belong, and say them in words too."""

from __future__ import annotations

from dataclasses import replace

from lxml import etree

from core.report import plots

SVG = "{http://www.w3.org/2000/svg}"


def test_sources_are_counted_in_fifths(report):
    spread = replace(report.sources, values=(-0.5, 0.0, 0.19, 0.2, 1.0))
    drawing = etree.fromstring(plots.sources_plot(spread).svg())
    texts = [one.text for one in drawing.iter(f"{SVG}text")]
    counted = dict(zip(texts[10:], texts[:10], strict=True))
    # from −1 in fifths: −0.5 in [−0.6, −0.4), 0 and 0.19 in [0, 0.2), 0.2 in [0.2, 0.4), 1 in the last
    assert {name: n for name, n in counted.items() if n != "0"} == {
        "-0.6 to -0.4": "1",
        "0 to 0.2": "2",
        "0.2 to 0.4": "1",
        "0.8 to 1": "1",
    }
