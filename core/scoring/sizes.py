"""How many items are scored together, between two checkpoints and in a part."""

from __future__ import annotations

from core.export.fused_judge import FusedJudge
from core.judging.llm import LLMJudge
from core.judging.local import LocalJudge
from core.scoring.mending import model_behind, models_behind
from core.scoring.request import RowJudge

BATCH = 400
"""Items scored between two checkpoints, by a judge that computes."""

REMOTE_BATCH = 32
"""Calls between two checkpoints, by a judge that asks a model."""

BATCHES_ON_GPU = 7
"""Batches that a model on a GPU is asked as one, as far as a part goes: a single one leaves most of it idle."""

PART, REMOTE_PART = 2_000, 250
"""Items of a part, of a judge that computes and of one that asks a model: what an actor loses of each under way."""


def batch_size(judge: RowJudge, *, anywhere: bool = False) -> int:
    """Items between two checkpoints on this host; `anywhere`: as many as that comes to on any."""
    if (asked := model_behind(judge)) is None:
        return BATCH
    several = isinstance(asked, LocalJudge) and (anywhere or asked.on_gpu)
    return max(1, REMOTE_BATCH // calls_an_item(judge, asked)) * (BATCHES_ON_GPU if several else 1)


def part_size(judge: RowJudge | FusedJudge) -> int:
    """Items of a part: whole batches of any node, so that a model sees the same together as in one process."""
    most = REMOTE_PART if models_behind(judge) else PART
    return most if isinstance(judge, FusedJudge) else most // (n := batch_size(judge, anywhere=True)) * n or most


def calls_an_item(judge: RowJudge, asked: LLMJudge) -> int:
    """Calls of the model `asked` that an item takes."""
    return max(1, judge.calls_an_item * asked.sampling.samples)
