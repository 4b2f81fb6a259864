"""Words that turn, weigh or switch off what a clause of criteria names; comma-separated, "*" for any ending."""

from __future__ import annotations

import re

from core.judging.offline.wordings import expression

PENALISE = expression(
    "penali*, avoid*, punish*, deduct*, mark down, marked down, lower the*, lowers, lowered, lower score*, "
    "lower rating*, reduce*, bad, poor*, worse, worst, low score*, low rating*, low mark*, lowest, score of 1, "
    "score 1, scores 1, one point, lose points, loses points, downgrade*, harm*, hurt*, unacceptable, weak, weaker, "
    "against, subtract*"
)
REWARD = expression(
    "reward*, prefer*, good, better, best, high score*, higher score*, highest, high rating*, higher rating*, raise*, "
    "increase*, favour*, favor*, should, must, ideal*, praise*, value, excellent, strong text*, credit*, score of 5, "
    "score 5, scores 5, want*, well, look for, expect*"
)
NEGATION = expression(
    "not, never, no, without, free of, free from, rather than, instead of, lack, lacks, lacking, absen*, neither, "
    "cannot, don't, doesn't, isn't, aren't, can't, won't, shouldn't, mustn't"
)
IGNORE = expression(
    "ignore, ignoring, regardless, disregard*, does not matter, do not matter, doesn't matter, don't matter, "
    "should not matter, is of no importance, irrespective, do not penali*, don't penali*, do not punish, don't punish, "
    "do not consider, don't consider, do not care, don't care, not to be penali*, should not be penali*, need not"
)
STRENGTHS: tuple[tuple[re.Pattern[str], float], ...] = (
    (
        expression(
            "above all, most important, most importantly, paramount, crucial*, first and foremost, essential, "
            "critical, critically"
        ),
        2.0,
    ),
    (
        expression(
            "mainly, strongly, heavily, primarily, especially, greatly, severely, very important, chiefly, mostly, "
            "particularly"
        ),
        1.5,
    ),
    (expression("slight*, a little, a bit, marginal*, minor, less important, least"), 0.25),
    (expression("somewhat, to some extent, moderately, partly, ideally, also consider, secondary, secondarily"), 0.5),
)
"""Strength words with the weight they give, strongest first; 1.0 without any."""

ONLY = expression("these points only, only these points, only by these, nothing else matters, nothing else counts")
"""Says that the aspect itself, as a whole, is not to count beside the clauses."""
