"""What people decide: labels, triage, criteria as reviewed documents, and the log that they stand in.

Pure: records in, records out.  Labels and drafts are rows of their own (`core.store.labels`);
everything else is an entry of the log (`core.store.log`), one record a kind, and the state of a thing is what its
entries add up to.

=============  =======================================================================================
``log``        what all entries of the log share, and those of no document
``plan``       who rates which items of a labelling pass, in which order
``passes``     labels, labelling passes, and what a rater has to do in one
``agreement``  what comes of a pass: agreement, disagreements to decide, a new golden set
``anchors``    what each level of a scale means, in the project's own words
``highlights`` words of an item that a rater marked
``triage``     misaligned items that people looked at, and looks at held-out items
``judge_versions``  the versions of a judge: made, measured, signed off, in use
``criteria``   a criteria document: name, comments, lock; unsaved drafts of it
``criteria_names``  names proposed from the texts of criteria
=============  =======================================================================================

`core.projects` joins them with the store, under the same names: a label is saved by `core.projects.labelling`.
"""

from __future__ import annotations

from core.review import anchors, criteria, highlights, judge_versions, log, passes, triage  # noqa: F401
from core.review.log import KINDS

__all__ = ["KINDS"]
