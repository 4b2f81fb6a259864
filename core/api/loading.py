"""Judge files → judges that score: the one place that knows when a file's judge gets the key, and what must be said.

A judge file may come from anybody, and it names the endpoint that its judge asks.  The key of this machine goes to the
endpoint that `OPENAI_BASE_URL` names, to OpenAI's own and to this machine (any port: a server that runs here can read
what runs here anyway); to any other only when the caller names that judge themself.  `core.judging.registry` decides,
with the URL in hand that will be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import ConsentError, JudgeError, UsageError
from core.export.calibrated_judge import CalibratedJudge
from core.export.fused_judge import FusedJudge
from core.export.judge_reading import is_fused_file, open_file
from core.export.loaded import LoadedJudge
from core.judging.base import Judge
from core.judging.parse import PARSER
from core.judging.registry import CAREFUL, NAMED, Gate, endpoint_of, make_judge, parse_spec, restore_judge
from core.judging.styles import Sampling
from core.providers.base import ReplyStore
from core.settings import Settings

__all__ = ["EDITED", "load_judge", "restored"]

EDITED = "The file of this judge was changed after its export, and whoever loaded it accepted that."
OTHER = (
    "Scored by {now}, but calibrated with {then}: the alignment in the judge file was not measured with this judge. "
    "Measure it again before relying on these scores."
)
ASKED = (
    "{spec} is asked in another way than when it was calibrated ({what}): the alignment in the judge file was not "
    "measured like this."
)
READ = "Replies are read by {now}, and were read by {then} when the judge was calibrated: a few scores may differ."
NO_KEY = (
    "The endpoint comes out of the judge file, so OPENAI_API_KEY was not sent there. If you trust it, set "
    "OPENAI_BASE_URL to it, or name the judge yourself: load_judge(path, judge={spec!r})."
)


def load_judge(
    path: Path | str,
    *,
    judge: str | Judge | None = None,
    replies: ReplyStore | None = None,
    accept_edited: bool = False,
) -> LoadedJudge:
    """The judge in a `judge.yaml` or a `fused.yaml`, ready to score; its key, if it needs one, is the environment's.

    `judge` scores with another judge (a SPEC or a Judge) than the one it was calibrated with, asked in the same way;
    `marks` of what comes back then says so.  `replies` keeps a remote judge's replies.  A file that was changed after
    its export is refused unless `accept_edited`, and marked then.  JudgeError for anything wrong with the file,
    UsageError for a `judge` that is of no known form, or that is given for a fused file.
    """
    settings = Settings.from_environment()
    fused = is_fused_file(path)
    if fused and judge is not None:
        raise UsageError(f"{path}: is a fused judge, which holds its own judges; load it without judge=.")
    file = open_file(path, "fusion" if fused else "judge", accept_edited=accept_edited)
    marks = (EDITED,) if file.edited else ()
    if fused:
        return FusedJudge.of(
            file.card, lambda card: restored(card, settings, replies, str(path)), where=str(path), marks=marks
        )
    if judge is None:
        return restored(file.card, settings, replies, str(path), marks=marks)
    if isinstance(judge, str):
        judge = _named(judge, file.card["judge"], settings, replies)
    return CalibratedJudge.of(file.card, judge, where=str(path), marks=(*marks, *_differences(file.card, judge)))


def restored(
    card: Mapping[str, Any],
    settings: Settings,
    replies: ReplyStore | None = None,
    where: str = "judge file",
    *,
    marks: Sequence[str] = (),
    gate: Gate = CAREFUL,
) -> CalibratedJudge:
    """The calibrated judge of a checked card; the key stays here unless `gate` lets it go to its endpoint."""
    state = card["judge"]
    try:
        judge = restore_judge(state, settings, replies, gate=gate)
        hint = NO_KEY.format(spec=state["spec"]) if _key_stays(state["spec"], settings, gate) else ""
    except UsageError as error:
        raise JudgeError(f"{where}: judge: {error}") from error
    return CalibratedJudge.of(card, judge, where=where, marks=(*marks, *_differences(card, judge)), hint=hint)


def _key_stays(spec: str, settings: Settings, gate: Gate) -> bool:
    """Whether there is a key that the judge of a file asks without."""
    parsed = parse_spec(spec)
    if parsed.kind != "openai" or settings.openai_api_key is None:
        return False
    try:
        return gate.key_for(endpoint_of(parsed, settings), settings) is None
    except ConsentError:
        return False


def _named(spec: str, state: Mapping[str, Any], settings: Settings, replies: ReplyStore | None) -> Judge:
    """The judge that the caller names, asked as the file says."""
    if spec.strip() == state["spec"]:
        return restore_judge(state, settings, replies, gate=NAMED)
    sampling = Sampling.from_state(state.get("sampling") or {})
    return make_judge(spec, settings, replies, sampling=sampling, gate=NAMED)


def _differences(card: Mapping[str, Any], judge: Judge) -> list[str]:
    """What sets the judge that scores apart from the one that was calibrated, in sentences; once each."""
    then = card["judge"]
    if judge.spec != then["spec"]:
        return [OTHER.format(now=judge.spec, then=then["spec"])]
    ours, theirs = judge.as_state().get("sampling"), then.get("sampling")
    if ours is not None and theirs is not None:
        scoring = {name for name in {*ours, *theirs} if name not in ("draft_prompt", "refine_prompt")}
        other = sorted(name for name in scoring if name in theirs and ours.get(name) != theirs[name])
        if other:
            return [ASKED.format(spec=judge.spec, what=", ".join(other))]
    if card.get("parser") not in (None, PARSER):
        return [READ.format(now=PARSER, then=card["parser"])]
    return []
