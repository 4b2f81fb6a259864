"""The judge of a scoring: opened from its file, its batches, and what a resumed scoring must have in common."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from core.errors import ConcordError, JudgeError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import LoadedJudge, RowJudge
from core.judge_files.loading import load_judge
from core.judging.llm_judge import LLMJudge, LocalJudge
from core.providers.completions import ReplyStore
from core.scoring.item_file import ItemFile, file_digest
from core.scoring.output import UNREAD, Done, is_csv
from core.scoring.request import ScoreRequest
from core.wording import percent

BATCH = 400
"""Items scored between two checkpoints, by a judge that computes."""

REMOTE_BATCH = 32
"""Calls between two checkpoints, by a judge that asks a model."""

BATCHES_ON_GPU = 7
"""Batches that a model on a GPU is asked as one, as far as a part goes: a single one leaves most of it idle."""

PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what a killed actor loses of each."""

ENOUGH_ITEMS = 50
"""Items from which the share of unread ones stops a scoring."""


def open_judge(request: ScoreRequest, replies: ReplyStore | None = None) -> RowJudge:
    """Open the judge that a request asks for.  UsageError for a fused one."""
    judge = load_judge(
        request.judge_file, judge=request.judge or None, replies=replies, accept_edited=request.accept_edited
    )
    if not isinstance(judge, RowJudge):
        raise UsageError(f"{request.judge_file}: holds a fused judge, which scores a file as a whole.")
    return judge


def model_behind(judge: LoadedJudge) -> LLMJudge | None:
    """Return the language model that the judge asks, None for one that computes."""
    return judge.judge if isinstance(judge, CalibratedJudge) and isinstance(judge.judge, LLMJudge) else None


def models_behind(judge: LoadedJudge) -> tuple[LLMJudge, ...]:
    """Return all language models that the judge asks."""
    if isinstance(judge, FusedJudge):
        return judge.models
    asked = model_behind(judge)
    return () if asked is None else (asked,)


def batch_size(judge: RowJudge, *, anywhere: bool = False) -> int:
    """Return the items between two checkpoints on this host; `anywhere`: as many as that comes to on any."""
    if (asked := model_behind(judge)) is None:
        return BATCH
    several = isinstance(asked, LocalJudge) and (anywhere or asked.on_gpu)
    return max(1, REMOTE_BATCH // calls_an_item(judge)) * (BATCHES_ON_GPU if several else 1)


def part_size(judge: LoadedJudge) -> int:
    """Return the items of a part: whole batches of any node, so a model sees the same together as in one process."""
    most = REMOTE_PART if models_behind(judge) else PART
    return most if not isinstance(judge, RowJudge) else most // (n := batch_size(judge, anywhere=True)) * n or most


def calls_an_item(judge: RowJudge) -> int:
    """Return the requests to the language model that an item takes."""
    asked = model_behind(judge)
    return max(1, judge.calls_an_item * (asked.sampling.samples if asked else 1))


def affordable_items(budget: int | None, judge: RowJudge) -> int | None:
    """Return how many items a budget pays for; UsageError for one that does not pay for a single item."""
    each = judge.calls_an_item
    if budget is not None and budget < each:
        raise UsageError(
            f"--budget {budget} pays for no item: each takes {each} calls, one for each of the judge's criteria."
        )
    return None if budget is None else budget // each


def identity_of(request: ScoreRequest, items: ItemFile, judge: LoadedJudge) -> dict[str, Any]:
    """Return what a scoring must have in common with the one that it resumes; `output.what_differs` compares it."""
    weights = []
    for asked in models_behind(judge):
        if asked.spec.startswith("hf:"):
            with suppress(ConcordError):  # a model that lies on other nodes alone
                weights.append(asked.provider.endpoint.rpartition(":")[0])  # whatever numbers it computes in
    return {
        "input": {"digest": items.digest, "n_items": items.n_items},
        "judge": {"digest": file_digest(request.judge_file)},
        **({"weights": weights} if weights else {}),
        "options": {
            "judge": judge.spec,
            "explain": request.explain,
            "form": "csv" if is_csv(request.out) else "jsonl",
            "marks": list(judge.marks),
            "coverage": request.coverage,
            "abstain_over": request.abstain_over,
            **({"map": dict(request.mapping)} if request.mapping else {}),
        },
    }


def check_unread(request: ScoreRequest, judge: LoadedJudge, first: Done, now: Done) -> None:
    """JudgeError when too many of the items since `first` came back unread."""
    n, reasons = now.items - first.items, now.reasons - first.reasons
    unread = sum(count for reason, count in reasons.items() if reason in UNREAD)
    if not models_behind(judge) or n < ENOUGH_ITEMS or unread <= request.most_unread * n:
        return
    words = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common() if reason in UNREAD)
    raise JudgeError(
        f"{judge.spec}: {unread:,} of the first {n:,} items came back unread ({words}); at most "
        f'{percent(request.most_unread)} may. Look at the replies ("raw" in the output), mend the endpoint or the '
        "judge's settings, and run the same command with --again: cached replies cost nothing. --most-unread sets the "
        "limit."
    )
