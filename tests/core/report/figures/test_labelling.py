"""The figure of agreement as it grows."""

from __future__ import annotations

from core.records import Interval
from core.report.figures.labelling import Growth, growth_figure


def test_alpha_over_items_with_its_interval_at_the_end() -> None:
    figure = growth_figure(
        Growth((1, 5, 9), (None, 0.4, 0.6)), Interval(0.3, 0.8, method="m"), metric="ordinal", n_expected=20
    )
    line, whisker = figure.data
    assert list(line.x) == [1, 5, 9]
    assert list(line.y) == [None, 0.4, 0.6]  # undefined is a gap, not 0
    assert (list(whisker.x), list(whisker.y)) == ([9, 9], [0.3, 0.8])
    assert figure.layout.yaxis.title.text == "Krippendorff's alpha, ordinal"
    assert list(figure.layout.xaxis.range) == [0, 21]


def test_without_an_interval_there_is_no_whisker_and_disagreement_lies_below_nought() -> None:
    figure = growth_figure(Growth((3,), (-0.3,)), None, metric="nominal", n_expected=0)
    assert len(figure.data) == 1
    assert figure.layout.yaxis.range[0] < -0.3
    assert len(growth_figure(Growth((), ()), None, metric="nominal", n_expected=0).data) == 1
