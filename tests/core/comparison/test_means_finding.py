"""What is said of the means of systems."""

from __future__ import annotations

import numpy as np

from core.comparison.judged import UNNAMED
from core.comparison.means_finding import means_finding
from core.records import Scale
from core.stats.system_means import JudgedItems, system_means


def of(names: tuple[str, ...], labelled: int) -> JudgedItems:
    """40 sources; the first system has labels on 20 of them where it is among the `labelled` systems."""
    generator = np.random.default_rng(2)
    sources, systems = np.indices((40, len(names)))
    labels = np.where((sources < 20) & (systems < labelled), generator.integers(1, 6, sources.shape), np.nan)
    scores = generator.normal(3, 1, sources.shape)
    return JudgedItems(labels.ravel(), scores.ravel(), sources.ravel(), systems.ravel(), names, Scale(1, 5, 1.0))


def test_one_sentence_fits_one_system_or_several_without_labels() -> None:
    for names, words in ((("A", "B"), "B"), (("A", "B", "C"), "B and C")):
        said = means_finding(system_means(of(names, 1)), "q").cautions
        assert f"No corrected mean of {words}: no label on any item." in said


def test_items_of_no_named_system_are_one_set() -> None:
    assert means_finding(system_means(of((UNNAMED,), 1)), "q").headline.startswith("the whole set has a mean q of ")
