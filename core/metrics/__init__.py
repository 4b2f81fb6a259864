"""Metrics: whatever puts one number on an item, as a baseline next to the judges and as a part of a fusion.

::

    base         what a metric is, and how its numbers are put together      Metric MetricScores
    registry     names → metrics; columns, scores from elsewhere, RepEval    make_metric metrics_for
    scoring      scored or left out with a reason; numbers kept              score_or_reason kept ScoreFolder as_judge
    word_metrics overlap with the source; ROUGE, BLEU, chrF, METEOR
    embeddings   cosines of MiniLM; BERTScore
    models       entailment, learned regression, likelihood (BARTScore, GPTScore)
    checkpoints  safe loading, batches of like length

torch, transformers, rouge_score, nltk and bert_score are imported when a metric that needs them scores.
"""

from core.metrics.base import Metric, MetricScores
from core.metrics.registry import (
    fitted_repeval,
    given_scores,
    make_metric,
    metric_column,
    metrics_for,
    model_of,
    readable,
)
from core.metrics.scoring import ScoreFolder, as_judge, kept, score_or_reason

__all__ = [
    "ScoreFolder",
    "Metric",
    "MetricScores",
    "as_judge",
    "fitted_repeval",
    "given_scores",
    "kept",
    "make_metric",
    "metric_column",
    "metrics_for",
    "model_of",
    "readable",
    "score_or_reason",
]
