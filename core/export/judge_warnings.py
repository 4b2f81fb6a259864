"""What a golden set's labels give reason to be careful about, in sentences for the judge file."""

from __future__ import annotations

import numpy as np

from core.records import GoldenSet

SKEWED = 0.75
"""From this share of equal labels on, the others decide little about an alignment over all items."""

FEW_RATERS = 2


def label_warnings(golden: GoldenSet, aspect: str) -> list[str]:
    """Skewed labels and single raters; few labels are the calibration's own to tell."""
    labels = golden.labels(aspect)
    values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
    if not values.size:
        return []
    said = []
    share = counts.max() / counts.sum()
    if share >= SKEWED and values.size > 1:
        said.append(
            f"The labels are skewed: {share:.0%} of {counts.sum()} are {values[counts.argmax()]:g}. The alignment "
            "rests on the few others."
        )
    raters = {one.rater_id for one in golden.ratings if one.aspect == aspect}
    if len(raters) < FEW_RATERS:
        said.append("The golden set holds no ratings by several people, so how well people agree is not known.")
    return said
