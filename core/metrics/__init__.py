"""Metrics: one number per item, as a baseline for judges or an input of a fusion.

::

    base         metric interface; scores or reasons; cache                    Metric score_or_reason kept as_judge
    registry     metrics by name; columns; fitted RepEval                      make_metric metrics_for
    word_metrics overlap with the source; ROUGE, BLEU, chrF
    checkpoints  entailment, learned regression, likelihood, BERTScore, cosines of MiniLM; safe loading

torch, transformers, rouge_score, nltk and bert_score are imported when a metric first needs them.
"""

from core.metrics.base import Metric, MetricScores, as_judge, kept, score_or_reason
from core.metrics.registry import (
    fitted_repeval,
    make_metric,
    metric_column,
    metrics_for,
    model_of,
    readable,
)

__all__ = [
    "Metric",
    "MetricScores",
    "as_judge",
    "fitted_repeval",
    "kept",
    "make_metric",
    "metric_column",
    "metrics_for",
    "model_of",
    "readable",
    "score_or_reason",
]
