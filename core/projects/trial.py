"""Criteria tried on one item: what the judge is asked, what it replies, and the score; nothing is saved of it.

The worker asks, in a lane of its own, so that a trial waits for no long run.  Reviewers try: it sends a text that
somebody typed to an endpoint that costs money, as the runs do that only they may start.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace

from core.errors import CriteriaError, UsageError
from core.progress import Stage
from core.projects.calibration import calibration_asked, sides_of
from core.projects.criteria import LONGEST_TEXT
from core.projects.roles import requires
from core.projects.runs import RunWork, judge_run, require_judge, start_run
from core.providers.completions import Message
from core.records import Criteria, Provenance, Scored, Usage
from core.settings import Settings
from core.store.store import Store
from core.wording import judge_words


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Judge one item under `text` with the judge of `run_id`; `criteria_id` is what was on the screen, if anything."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    item_id: str
    text: str
    criteria_id: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of it.  `score` is None where no reply could be read; `reason` then says why.

    `prompts` are the messages as sent, one entry a prompt (() for a judge that is asked in no words), `replies` the
    replies as they came, and `explanation` the judge's reasons, or what it computed on.
    """

    score: float | None
    reason: str
    explanation: str
    prompts: tuple[tuple[Message, ...], ...]
    replies: tuple[str, ...]
    notice: str
    usage: Usage = field(default_factory=Usage)


@requires("reviewer", "tried criteria on one item")
def start_trial(store: Store, settings: Settings, request: TrialRequest) -> str:
    """Ask the judge of `request.run_id` for the score of one item under `request.text` (`start_run`).

    An empty text asks without criteria.  UsageError for an item that the run's golden set does not have, for a held-out
    one (looking at those one by one would end their being held out), or for another aspect; CriteriaError for an
    overlong text; JobError when the run has no judge yet.
    """
    request = replace(request, run_id=judge_run(store, request.run_id), text=request.text.strip())
    if len(request.text) > LONGEST_TEXT:
        raise CriteriaError(f"Criteria may have {LONGEST_TEXT:,} characters; these have {len(request.text):,}.")
    of = calibration_asked(store, request.run_id)
    if (request.golden_id, request.aspect) != (of.golden_id, of.aspect):
        raise UsageError(f"The judge of that run was calibrated for {of.aspect} on another golden set.")
    golden = store.goldens.load(of.golden_id)
    if request.item_id not in golden.item_ids:
        raise UsageError(f"The golden set has no item {request.item_id[:60]!r}.")
    if golden.item_ids.index(request.item_id) in sides_of(store, request.run_id, golden).held_out:
        raise UsageError(f"The item {request.item_id[:60]!r} is held out. Try criteria on a calibration item.")
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{request.aspect} · criteria tried on {request.item_id[:60]} · {judge_words(spec)}"
    return start_run(store, settings, "trial", request, title=title, judge_spec=spec)


def trial_items(store: Store, run_id: str) -> tuple[str, ...]:
    """The ids of the items that criteria may be tried on with the judge of a run: all that are not held out."""
    of = calibration_asked(store, judge_run(store, run_id))
    golden = store.goldens.load(of.golden_id)
    held_out = set(sides_of(store, run_id, golden).held_out)
    return tuple(item.item_id for place, item in enumerate(golden.items) if place not in held_out)


def run_trial(work: RunWork) -> TrialResult:
    """Ask for one score, with reasons; it is entered nowhere."""
    from core.judging.judge_specs import NAMED, restore_judge
    from core.judging.llm_judge import LLMJudge

    request, golden = work.request(TrialRequest), work.golden
    task = calibration_asked(work.store, request.run_id).task(golden)
    item = golden.items[golden.item_ids.index(request.item_id)]
    criteria = Criteria(request.text, request.aspect, Provenance("given" if request.text else "none"))
    state = require_judge(work.store, request.run_id)
    work.progress.publish(Stage("trial", "asking the judge", 0, 1))
    with closing(restore_judge(state, work.settings, work.replies, gate=NAMED)) as judge:
        prompts = judge.prompts(task, item, criteria) if isinstance(judge, LLMJudge) else ()
        scores = judge.score(task, [item], [criteria], explain=True, on_progress=work.progress.advance)
        notice = judge.notice
    (verdict,) = scores.explained
    work.progress.publish(Stage("done", "done", 1, 1, scores.usage))
    if isinstance(verdict, Scored):
        return TrialResult(verdict.value, "", verdict.explanation, prompts, verdict.raw, notice, scores.usage)
    return TrialResult(None, verdict.reason, verdict.detail, prompts, verdict.raw, notice, scores.usage)
