"""Assistants (004 §3): whatever gives one number per item, for baselines beside the judges and for fusion.

::

    base         the record, its scores, what scorers are built from   Assistant AssistantScores
    registry     names → assistants                                    make_assistant assistants_for
    run          several on the same items, failures left out          score_all Assisted unusable
    overlap      words and pairs of words found in the source
    rouge        ROUGE-N and ROUGE-L, references or source             rouge
    references   BLEU, chrF, METEOR
    similarity   MiniLM cosines
    given        metric columns; scores from elsewhere                 metric_column given_scores
    kept         numbers kept, so that none is computed twice          kept, Folder
    hidden       a fitted RepEval score out of a file                  fitted_repeval
    checkpoints  safe loading, batches of like length
    entailment   NLI, learned regressors
    bertscore    BERTScore
    generation   BARTScore, UniEval, SEAHORSE

torch, transformers, rouge_score, nltk and bert_score are imported when an assistant that needs them scores.
"""

from core.fusion.assistants.base import Assistant, AssistantScores
from core.fusion.assistants.given import given_scores, lower_is_better, metric_column
from core.fusion.assistants.hidden import fitted_repeval
from core.fusion.assistants.kept import Folder, kept
from core.fusion.assistants.registry import MODEL_KINDS, WITHOUT_MODEL, assistants_for, make_assistant
from core.fusion.assistants.rouge import rouge
from core.fusion.assistants.run import Assisted, score_all, unusable

__all__ = [
    "MODEL_KINDS",
    "WITHOUT_MODEL",
    "Assistant",
    "AssistantScores",
    "Assisted",
    "assistants_for",
    "fitted_repeval",
    "given_scores",
    "kept",
    "Folder",
    "lower_is_better",
    "make_assistant",
    "metric_column",
    "rouge",
    "score_all",
    "unusable",
]
