"""Files of what another judge said: replies or scores by item id, read, matched with a golden set, shown before use.

::

    load_recording(file) ── Recording ── propose_columns(recording, aspect) ── Columns (correctable)
                                └──────────────┬────────────────────────────────────┘
    match(recording, golden, aspect, choices) ── ImportPreview ── as_judge(name) ── JudgeScores, replies by item id

Formats: whatever `core.data.read_table` reads, and the output files of batch endpoints.  Which column plays which part
is proposed by name or alias, told, and can be corrected; a score on another scale is counted and asked about, never
clipped or guessed.
"""

from core.data.verdict_files.match import by_order, match
from core.data.verdict_files.preview import ImportChoices, ImportPreview, Take, Use
from core.data.verdict_files.recording import (
    BY_ORDER,
    CALIBRATION_ITEM,
    ROLES,
    Columns,
    Entry,
    Recording,
    Reply,
    Role,
    entries,
    load_recording,
    propose_columns,
)

__all__ = [
    "BY_ORDER",
    "CALIBRATION_ITEM",
    "ROLES",
    "Columns",
    "Entry",
    "ImportChoices",
    "ImportPreview",
    "Recording",
    "Reply",
    "Role",
    "Take",
    "Use",
    "by_order",
    "entries",
    "load_recording",
    "match",
    "propose_columns",
]
