"""Start a RepEval run of a project, and do it: `core.repeval.fitted.fit_repeval`.  Only the worker loads a model.

A resumed run reads the texts whose states are not in CONCORD_HOME/states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.errors import NotFoundError, UsageError
from core.judging.reply_verdicts import NO_TEXT
from core.projects.calibration import calibration_asked, sides_of
from core.projects.roles import requires
from core.projects.run_work import start_run
from core.records import GoldenSet, JudgeScores, Split, Unscored
from core.repeval import Method, RepEvalResult, RepEvalSettings, split_three
from core.repeval.cell_search import FEW_LABELS, blank_items, shortage_of_pairs, training_of
from core.repeval.fitted import fit_repeval
from core.repeval.model import EMBEDDED
from core.repeval.projection import Training
from core.repeval.repeval_records import RepEvalSplit
from core.repeval.states import template_text, texts_to_read
from core.settings import Settings
from core.store.store import Store
from core.texts import text_length

if TYPE_CHECKING:
    from core.projects.run_work import RunWork

METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "paper-pca": "PCA as the paper",
    "paper-svm": "SVM as the paper",
}


@dataclass(frozen=True, slots=True)
class RepEvalRequest:
    """Read the texts of a golden set with a model and project its hidden states on one aspect.

    `split_of` names a calibration of the same golden set and aspect: RepEval is then evaluated on that run's held-out
    items and learns from its calibration items; "" draws a split of its own.
    """

    project_id: str
    golden_id: str
    aspect: str
    settings: RepEvalSettings = field(default_factory=RepEvalSettings)
    split_of: str = ""


@dataclass(frozen=True, slots=True)
class RepEvalEstimate:
    """Known before the start, without the model: distinct texts to read, their words, the three parts, the pairs.

    `n_texts` counts each text once; `n_pairs` is what the training labels give (0 for a method without pairs).
    """

    n_texts: int
    n_words: int
    n_train: int
    n_validation: int
    n_test: int
    n_pairs: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepEvalOutcome:
    """A finished run: the result, and the judge it entered."""

    result: RepEvalResult
    judge_id: str = ""


def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Texts, words, parts and pairs of a run before it starts; no model is loaded.

    Raises what the run would raise later about the request: UsageError about the template, the texts or the split,
    AspectError when the labels cannot serve, NotFoundError for unknown ids.
    """
    golden, parts, training = _checked(store, request)
    texts = texts_to_read(golden.items, request.settings.read(request.aspect))
    shortage = shortage_of_pairs(training, request.settings)
    notes = [shortage] if shortage else []
    if len(parts.validation) < FEW_LABELS:
        notes.append(
            f"Layer and token are chosen on {len(parts.validation)} validation labels only: another draw may choose "
            "others. More labelled sources make the choice steadier."
        )
    return RepEvalEstimate(
        n_texts=len(texts),
        n_words=sum(text_length(text) for text in texts),
        n_train=len(parts.train),
        n_validation=len(parts.validation),
        n_test=len(parts.test),
        n_pairs=training.good.size if request.settings.uses_pairs else 0,
        notes=tuple(notes),
    )


@requires("reviewer", "started RepEval")
def start_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> str:
    """Start a RepEval run (`start_run`); its score becomes one of the project's judges.

    Raises like `estimate_repeval`; what is wrong with the model shows in the run, because only the worker opens it.
    """
    _checked(store, request)
    model = request.settings.model.name
    title = f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}"
    return start_run(store, settings, "repeval", request, title=title, judge_spec=model)


def _checked(store: Store, request: RepEvalRequest) -> tuple[GoldenSet, RepEvalSplit, Training]:
    """The golden set, its split and what is learnt from; raises the errors of `estimate_repeval`."""
    golden = store.goldens.load(request.golden_id)
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}.")
    if not request.settings.model.name.strip():
        raise UsageError("No model is named; give minilm, a Hugging Face id, or a folder on the worker's machine.")
    reading = request.settings.read(request.aspect)
    template_text(reading.template)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    return golden, parts, training_of(golden, request.aspect, parts, request.settings)


def split_of(store: Store, golden: GoldenSet, request: RepEvalRequest) -> Split | None:
    """The split of the calibration `request.split_of`; None for one of RepEval's own.

    UsageError when that run is of another golden set or aspect, JobError when it is no calibration.
    """
    if not request.split_of:
        return None
    calibration = calibration_asked(store, request.split_of)
    if (calibration.golden_id, calibration.aspect) != (request.golden_id, request.aspect):
        raise UsageError(
            f"Run {request.split_of} calibrated {calibration.aspect!r} of another golden set or aspect; its held-out "
            f"items are not those of {request.aspect!r} here. Choose a calibration of the same golden set and aspect."
        )
    return sides_of(store, request.split_of, golden)


def reads_a_model(request: RepEvalRequest) -> bool:
    """Whether the work is a model that wants a GPU: any but the embedded encoder, or one that asks for a device."""
    device, name = request.settings.model.device, request.settings.model.name
    return device in ("cuda", "mps") or (name != EMBEDDED and device != "cpu")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_repeval(work: RunWork) -> RepEvalOutcome:
    """Read, search, and enter the score among the judges."""
    request, golden = work.request(RepEvalRequest), work.golden
    split = split_of(work.store, golden, request)
    how, progress = request.settings, work.progress
    result = fit_repeval(golden, request.aspect, how, split=split, here=work.settings, progress=progress).result
    return RepEvalOutcome(result, work.add_judge(judge_of(result, golden, work.run.run_id)))


def judge_of(result: RepEvalResult, golden: GoldenSet, run_id: str) -> JudgeScores:
    """The score of every item as a judge; it saw the labels of the training and validation items."""
    method, cells = METHOD_NAMES[result.settings.method], len(result.members)
    place = f"layer {result.chosen.layer}, token {result.chosen.token}"
    where = f"mean of the {cells} best cells, the best at {place}" if cells > 1 else place
    return JudgeScores(
        name=f"RepEval, {method} ({result.model})",
        kind="repeval",
        aspect=result.aspect,
        values=result.scores,
        unscored=tuple(Unscored(golden.item_ids[k], "missing input", NO_TEXT) for k in blank_items(golden)),
        seen=tuple(sorted({*result.parts.train, *result.parts.validation})),
        on_scale=False,
        note=f"Hidden states of {result.model} projected by {method}: {where}. No call, one pass of the model a text.",
        run_id=run_id,
        calls_per_item=0.0,
    )
