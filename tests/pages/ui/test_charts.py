"""A drawing on a screen is an image whose words are read aloud."""

from __future__ import annotations

import base64

from lxml import etree
from streamlit.testing.v1 import AppTest

HOSTILE = "<script>alert(1)</script>"


def drawn() -> None:
    from core.records import Alignment
    from core.report.figures import held_out_figure
    from pages.ui import charts

    some = Alignment("spearman", "sample", 0.5, n=40)
    figure = held_out_figure({"<script>alert(1)</script>": some}, measure="rho")
    charts.place(figure, key="sides", alt="Both sides")


def test_a_drawing_is_an_image_that_says_what_it_shows() -> None:
    screen = AppTest.from_function(drawn, default_timeout=60).run()
    assert not screen.exception
    (picture,) = screen.get("image")
    (image,) = picture.proto.imgs
    kind, _, data = image.url.partition(",")
    assert kind == "data:image/svg+xml;base64"
    texts = etree.fromstring(base64.b64decode(data)).iter("{http://www.w3.org/2000/svg}text")
    assert any(HOSTILE[:20] in (node.text or "") for node in texts)
    assert image.alt.startswith("Both sides. <script>")
    assert ": 0.50" in image.alt
