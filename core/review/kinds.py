"""Every kind of entry that the log can hold; the store and project archives know no others."""

from __future__ import annotations

from core.review import criteria, log, meetings, passes, triage
from core.review.log import Entry

_ALL: tuple[type[Entry], ...] = (
    *(passes.LabelPass, passes.RaterJoined, passes.RaterStopped, passes.Adjudicated),
    *(triage.Triage, triage.HeldOutAccess),
    *(criteria.Comment, criteria.CommentSettled, criteria.LockChange, criteria.StateChange, criteria.ProposalDecided),
    *(meetings.MeetingBegun, meetings.ParticipantsSet, meetings.PointOpened, meetings.Vote, meetings.Decision),
    meetings.MeetingClosed,
    *(log.FusionPlanSaved, log.FusionKept),
    log.Action,
)
KINDS: dict[str, type[Entry]] = {one.kind: one for one in _ALL}
"""Name in the store → record."""
