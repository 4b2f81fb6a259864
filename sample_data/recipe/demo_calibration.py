"""The demo's golden set and its calibration: notifications of a newsroom, judged by the simulated reader.

`record` runs the calibration and writes each reply under the key of its request, as `core.providers.cached` reads it,
for the replay on Calibrate.  When a prompt or the reader changes, record again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from core.calibration.calibration_records import Calibration
from core.calibration.loop import calibrate
from core.data import load_golden
from core.data.split import task_of
from core.judging.llm_judge import LLMJudge
from core.projects.project_files import ASPECT, CHOSEN, DEFINITION
from core.providers import simulated_reader
from core.providers.cached import reply_to_json
from core.providers.completions import Reply, Request
from core.providers.scripted import ScriptedProvider

SAMPLES = Path(__file__).parents[1]
FOLDER = SAMPLES / "recorded"
PACE = 25.0
"""Replies per second of the replay, slow enough to watch."""
SPEC = "scripted:newsroom"
GOLDEN = SAMPLES / "notifications.jsonl"
SESSION = "newsroom_session.jsonl"
MODEL, ENDPOINT = "newsroom", "a recording in sample_data"
NEWER = ("notifications_second_batch", "notifications_careful_systems")
"""Golden sets of sample_data/newer, in the order in which the judge is rechecked on them."""


def record(out: Path = FOLDER) -> Calibration:
    """Run the calibration, write its replies into `SESSION` in `out`, and return it."""
    kept: dict[str, str] = {}

    def answer(request: Request) -> Reply:
        reply = simulated_reader.reply_to(request)
        kept[request.key(ENDPOINT)] = reply_to_json(reply)
        return reply

    golden = load_golden(GOLDEN)
    judge = LLMJudge(ScriptedProvider(MODEL, answer), MODEL, spec=SPEC)
    result = calibrate(golden, task_of(golden, ASPECT, DEFINITION), judge, CHOSEN)
    write_recording(out / SESSION, ENDPOINT, MODEL, kept.items(), pace=PACE)
    return result


def write_recording(
    path: Path, endpoint: str, model: str, replies: Iterable[tuple[str, str]], *, pace: float = 0.0
) -> None:
    """Write (key, stored JSON text) pairs as a recording for `RecordedProvider`."""
    head = {"endpoint": endpoint, "model": model} | ({"pace": pace} if pace else {})
    rows = [head, *({"key": key, "reply": json.loads(stored)} for key, stored in replies)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
