"""RepEval: what a run would read, and its start.  Nothing here loads a model: the worker does."""

from __future__ import annotations

from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.convert import calibration_asked
from core.projects.runs import start_run
from core.projects.views.repeval import METHOD_NAMES, RepEvalEstimate, RepEvalRequest
from core.public import split_for
from core.records import GoldenSet, Split
from core.repeval.drive import FEW_LABELS, pairs_for, split_three
from core.repeval.states.extraction import lacks_other_text
from core.repeval.states.prompts import item_fields, render, template_text
from core.settings import Settings
from core.store.store import Store


@requires("viewer")
def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Texts, words, parts and pairs of a run before it starts; no model is loaded.

    Raises what the run would raise later about the request: UsageError about the template, the texts or the split,
    AspectError when the labels cannot serve, NotFoundError for unknown ids.
    """
    golden = store.goldens.load(request.golden_id)
    check_request(golden, request)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    texts = _texts(golden, request)
    notes, n_pairs = [], 0
    pairs = pairs_for(golden, request.aspect, parts, request.settings)
    if request.settings.uses_pairs:
        n_pairs = pairs.n
        if pairs.shortage():
            notes.append(pairs.shortage())
    if len(parts.validation) < FEW_LABELS:
        notes.append(
            f"Layer and token are chosen on {len(parts.validation)} validation labels only: another draw may choose "
            "others. More labelled sources make the choice steadier."
        )
    return RepEvalEstimate(
        n_texts=len(texts),
        n_words=sum(len(text.split()) for text in texts),
        n_train=len(parts.train),
        n_validation=len(parts.validation),
        n_test=len(parts.test),
        n_pairs=n_pairs,
        notes=tuple(notes),
    )


@requires("reviewer", "started RepEval")
def start_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> str:
    """Put a RepEval run in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `RepEvalView`, and the score one of the project's judges.  Raises like
    `estimate_repeval`; what is wrong with the model shows in the run, because only the worker opens it.
    """
    store.projects.get(request.project_id)
    golden = store.goldens.load(request.golden_id)
    check_request(golden, request)
    pairs_for(
        golden,
        request.aspect,
        split_three(golden, request.aspect, request.settings, split_of(store, golden, request)),
        request.settings,
    )
    model = request.model.name
    title = f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}"
    return start_run(store, settings, "repeval", request, title=title, judge_spec=model)


def check_request(golden: GoldenSet, request: RepEvalRequest) -> None:
    """UsageError or NotFoundError for what can be seen without the model and the split."""
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}.")
    if not request.model.name.strip():
        raise UsageError("No model is named; give minilm, a Hugging Face id, or a folder on the worker's machine.")
    if problem := lacks_other_text(golden.items, request.extraction):
        raise UsageError(problem)
    template_text(request.extraction.template)
    if request.stability_seeds < 0 or request.stability_seeds == 1:
        raise UsageError(f"Stability needs 2 seeds or more (0 = leave it out); {request.stability_seeds} came.")
    if request.pairs_curve and not request.settings.uses_pairs:
        raise UsageError(
            f"{request.settings.method} learns from all training labels, not from pairs: there is no curve over pairs."
        )


def split_of(store: Store, golden: GoldenSet, request: RepEvalRequest) -> Split | None:
    """The split of the calibration `request.split_of`; None for one of RepEval's own.

    UsageError when that run is of another golden set or aspect, JobError when it is no calibration.
    """
    if not request.split_of:
        return None
    asked = calibration_asked(store, request.split_of)
    if (asked.golden_id, asked.aspect) != (request.golden_id, request.aspect):
        raise UsageError(
            f"Run {request.split_of} calibrated {asked.aspect!r} of another golden set or aspect; its held-out items "
            f"are not those of {request.aspect!r} here. Choose a calibration of the same golden set and aspect."
        )
    return split_for(golden, request.aspect, asked.settings)


def _texts(golden: GoldenSet, request: RepEvalRequest) -> set[str]:
    """The distinct texts that the model will read."""
    extraction = request.extraction
    if extraction.beside:
        return {getattr(item, part) for item in golden.items for part in (extraction.beside, "target")}
    template = template_text(extraction.template)
    return {render(template, item_fields(item, extraction.criterion)) for item in golden.items}
