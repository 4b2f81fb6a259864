"""What people decide: labels, triage, criteria as reviewed documents, meetings, and the log that they stand in.

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
``meetings``   a meeting: agenda, votes, decisions, and its minutes as Markdown
``agenda``     the questions that a meeting is asked, as plain sentences
=============  =======================================================================================

`core.projects` joins them with the store, under the same names: a label is saved by `core.projects.labelling`.
"""

from __future__ import annotations

from core.review import anchors, criteria, highlights, judge_versions, log, meetings, passes, triage
from core.review.log import Entry

_ALL: tuple[type[Entry], ...] = (
    *(passes.LabelPass, passes.RaterJoined, passes.RaterStopped, passes.Adjudicated, passes.LabelsFrozen),
    *(anchors.AnchorsSet, highlights.Highlighted),
    *(triage.Triage, triage.HeldOutAccess),
    *(criteria.Comment, criteria.CommentSettled, criteria.LockChange, criteria.EarlierState, criteria.ProposalDecided),
    criteria.CriteriaNamed,
    *(meetings.MeetingBegun, meetings.ParticipantsSet, meetings.PointOpened, meetings.Vote, meetings.Decision),
    meetings.MeetingClosed,
    *(judge_versions.VersionMade, judge_versions.VersionMeasured, judge_versions.VersionDecided),
    *(log.FusionPlanSaved, log.FusionKept),
    log.Action,
)
KINDS: dict[str, type[Entry]] = {entry.kind: entry for entry in _ALL}
"""Name in the store → record."""
