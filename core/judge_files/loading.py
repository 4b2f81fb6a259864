"""Judge files → judges that score: the one place that knows when a file's judge gets the key, and what must be said.

A judge file may come from anybody, and it names the endpoint that its judge asks.  The key of this machine goes to the
endpoint that `OPENAI_BASE_URL` names, to OpenAI's own and to this machine (any port: a server that runs here can read
what runs here anyway); to any other only when the caller names that judge themself.  `core.judging.judge_specs`
decides, with the URL in hand that will be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import ConsentError, JudgeError, UsageError
from core.judge_files.calibrated_judge import CalibratedJudge
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_reading import kind_of_file, open_file
from core.judge_files.loaded import LoadedJudge
from core.judge_files.repeval_judge import RepEvalJudge
from core.judging.judge_protocol import Judge
from core.judging.judge_specs import (
    CAREFUL,
    NAMED,
    NOT_RUN,
    PART_NOT_RUN,
    Gate,
    endpoint_of,
    make_judge,
    parse_spec,
    restore_judge,
)
from core.judging.parse import PARSER
from core.judging.scoring_styles import Style
from core.metrics import Metric, fitted_repeval, model_of
from core.providers.completions import ReplyStore
from core.repeval import EMBEDDED
from core.settings import Settings
from core.stats.conformal import VerdictIntervals

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
NOT_ITS_INTERVALS = "intervals are those of the judge as it was exported, and {why}; calibrate again"
CHANGED = "its file was changed since"
ANOTHER = "these verdicts come from another judge, or one asked in another way"
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
    alone: bool = False,
) -> LoadedJudge:
    """The judge in a `judge.yaml`, `fused.yaml` or `repeval.yaml`; its key, if it needs one, is the environment's.

    `judge` scores with another judge (a SPEC or a Judge) than the one it was calibrated with, asked in the same way;
    `marks` of what comes back then says so.  For a RepEval file it is ``hf:ID_OR_PATH``: where the very model that the
    score was fitted on lies here, and a person's leave to load it.  `replies` keeps a remote judge's replies.  A file
    that was changed after its export is refused unless `accept_edited`, and marked then.  `alone` computes in this
    process, whatever cluster the installation names.  JudgeError for anything wrong
    with the file, UsageError for a `judge` that is of no known form, or that is given for a fused file.
    """
    settings, kind = Settings.from_environment(), kind_of_file(path)
    settings = replace(settings, ray="") if alone else settings
    if kind == "fusion" and judge is not None:
        raise UsageError(f"{path}: is a fused judge, which holds its own judges; load it without judge=.")
    file = open_file(path, kind, accept_edited=accept_edited)
    marks = (EDITED,) if file.edited else ()
    if kind == "fusion":
        return FusedJudge.of(
            file.card,
            lambda card: restored(card, settings, replies, str(path)),
            lambda name, state: allowed_repeval(name, state, settings),
            open_model=lambda state: restore_judge(state, settings, replies),
            require_model=lambda name: require_metric_model(name, settings),
            where=str(path),
            marks=marks,
        )
    if kind == "repeval":
        return repeval_judge(file.card, judge, settings, where=str(path), marks=marks)
    if judge is None:
        return restored(file.card, settings, replies, str(path), marks=marks)
    if isinstance(judge, str):  # asked as the file says
        state = file.card["judge"]
        if judge.strip() == state["spec"]:
            judge = restore_judge(state, settings, replies, gate=NAMED)
        else:
            sampling = Style.from_state(state.get("sampling") or {})
            judge = make_judge(judge, settings, replies, sampling=sampling, gate=NAMED)
    return _calibrated(file.card, judge, str(path), marks)


def require_metric_model(name: str, settings: Settings) -> None:
    """ConsentError where the metric `name` of a file runs a model that this installation neither has nor lists."""
    model = model_of(name)
    if model and model != EMBEDDED and not CAREFUL.may_run((model, model.rpartition("@")[0] or model), settings):
        raise ConsentError(PART_NOT_RUN.format(model, name=model), f"hf:{model}")


def allowed_repeval(name: str, state: Mapping[str, Any], settings: Settings, gate: Gate = CAREFUL) -> Metric:
    """The RepEval score that a file holds; its model is read with the first items, on a cluster where one is set.

    ConsentError where the model does not come with the installation, is not listed in CONCORD_LOCAL_MODELS, and `gate`
    does not let it in: a file alone brings no model into the process.
    """
    fitted = fitted_repeval(name, state, ray=settings.ray, code=settings.remote_code)
    model, revision = str(state["model"]), str(state["revision"])
    pinned = f"{model}@{revision}" if revision else model
    if "model" in fitted.needs and not gate.may_run((model, pinned), settings):
        raise ConsentError(NOT_RUN.format(f"hf:{model}", name=model), f"hf:{model}")
    return fitted


def repeval_judge(
    card: Mapping[str, Any], judge: str | Judge | None, settings: Settings, *, where: str, marks: Sequence[str] = ()
) -> RepEvalJudge:
    """The RepEval score of a checked card; `judge` (hf:ID_OR_PATH) names the place of its model, and allows it."""
    state, gate = card["scorer"], CAREFUL
    if judge is not None:
        spec = parse_spec(judge) if isinstance(judge, str) else None
        if spec is None or spec.kind != "hf":
            raise UsageError(
                f"{where}: is a RepEval score, which reads the hidden states of {state['model']}; the only judge it "
                "takes is the place of that model: hf:ID_OR_PATH."
            )
        state, gate = state | {"model": spec.model, "revision": spec.revision}, NAMED
    refusal = None
    try:
        metric = allowed_repeval("repeval", state, settings, gate)
    except ConsentError as error:
        metric, refusal = fitted_repeval("repeval", state), error
    return RepEvalJudge.of(card, metric, where=where, marks=marks, refusal=refusal)


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
        spec, hint = parse_spec(state["spec"]), ""
        if spec.kind == "openai" and settings.openai_api_key is not None:
            with suppress(ConsentError):
                if not gate.key_goes(endpoint_of(spec, settings), settings):
                    hint = NO_KEY.format(spec=state["spec"])
    except UsageError as error:
        raise JudgeError(f"{where}: judge: {error}") from error
    return _calibrated(card, judge, where, marks, hint)


def _calibrated(
    card: Mapping[str, Any], judge: Judge, where: str, marks: Sequence[str], hint: str = ""
) -> CalibratedJudge:
    """`judge` as that of the card, with what sets it apart; its intervals only where it is the judge they were fitted
    to: errors of another text or model say nothing of how far this one is off.
    """
    then, parser = card["judge"], card.get("parser")
    asked, read = "", "" if parser in (None, PARSER) else READ.format(now=PARSER, then=parser)
    ours, theirs = judge.as_state().get("sampling"), then.get("sampling")
    if judge.spec != then["spec"]:
        asked = OTHER.format(now=judge.spec, then=then["spec"])
    elif ours is not None and theirs is not None:
        scoring = {*ours, *theirs} - {"draft_prompt", "refine_prompt"}
        if other := sorted(name for name in scoring if name in theirs and ours.get(name) != theirs[name]):
            asked = ASKED.format(spec=judge.spec, what=", ".join(other))
    others = (asked or read,) if asked or read else ()
    made = CalibratedJudge.of(card, judge, where=where, marks=(*marks, *others), hint=hint)
    why = CHANGED if EDITED in marks else ANOTHER if asked else ""
    if made.intervals is None or not why:
        return made
    nothing = VerdictIntervals(0, 0, reason=NOT_ITS_INTERVALS.format(why=why))
    return replace(made, intervals=nothing)
