"""RepEval: what is asked for, what a run would read, its start, and the run.  Only the worker loads a model.

::

    plan     tokenise and cut every text, count tokens; weights are not read yet
    read     texts through the model, here or on a Ray cluster; their states lie in CONCORD_HOME/states
    search   every cell and k on validation, evaluated on test

A run that is taken up again reads only texts without a file, with the model it began with; what was read and
the search are kept with the run.  Files that are gone by then (another host, a cleared folder) are computed
again before the search.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.judging.replies import NO_TEXT
from core.progress import Stage
from core.projects.calibration import calibration_asked, sides_of
from core.projects.roles import requires
from core.projects.runs import start_run
from core.records import GoldenSet, IntArray, JudgeScores, Split, Unscored
from core.repeval import (
    Extraction,
    Method,
    RepEvalResult,
    RepEvalSettings,
    States,
    run,
    scorer_of,
    split_three,
)
from core.repeval.cell_search import FEW_LABELS, blank_items, pairs_for
from core.repeval.extraction import Machines, collect
from core.repeval.model import EMBEDDED, ModelSpec
from core.repeval.projection import Pairs
from core.repeval.records import Parts
from core.repeval.states import lacks_other_text, template_text, texts_to_read
from core.settings import Settings
from core.store.store import Store
from core.texts import text_length

if TYPE_CHECKING:
    from core.projects.runs import RunWork

T = TypeVar("T")
BATCHES = 16
"""Batches of a part: what a killed worker may have to read again, about a second on a CPU, ten on a GPU."""
METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "mean-difference": "mean difference",
    "paper-pca": "PCA as the paper",
    "published": "PCA as the paper's code",
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
    model: ModelSpec = field(default_factory=ModelSpec)
    extraction: Extraction = field(default_factory=Extraction)
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


@dataclass(frozen=True, slots=True)
class ReadPart:
    """What one part of so many texts took; those that were kept from before took nothing."""

    texts: int
    cached: int
    tokens: int
    seconds: float
    n_halved: int


@dataclass(frozen=True)
class ReadSoFar:
    """The parts that were read, in order, by the model `identity`."""

    identity: str
    parts: tuple[ReadPart, ...] = ()


DOCUMENTS = {"states read": ReadSoFar, "search": RepEvalResult}
"""What a run keeps on its way, by name."""


def estimate_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalEstimate:
    """Texts, words, parts and pairs of a run before it starts; no model is loaded.

    Raises what the run would raise later about the request: UsageError about the template, the texts or the split,
    AspectError when the labels cannot serve, NotFoundError for unknown ids.
    """
    golden, parts, pairs = _checked(store, request)
    texts = texts_to_read(golden.items, request.extraction)
    uses_pairs = request.settings.uses_pairs
    notes = [pairs.shortage()] if uses_pairs and pairs.shortage() else []
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
        n_pairs=pairs.n if uses_pairs else 0,
        notes=tuple(notes),
    )


@requires("reviewer", "started RepEval")
def start_repeval(store: Store, settings: Settings, request: RepEvalRequest) -> str:
    """Start a RepEval run (`start_run`); its score becomes one of the project's judges.

    Raises like `estimate_repeval`; what is wrong with the model shows in the run, because only the worker opens it.
    """
    _checked(store, request)
    model = request.model.name
    title = f"{request.aspect} · RepEval · {METHOD_NAMES[request.settings.method]} · {model}"
    return start_run(store, settings, "repeval", request, title=title, judge_spec=model)


def _checked(store: Store, request: RepEvalRequest) -> tuple[GoldenSet, Parts, Pairs]:
    """The golden set, its split and the pairs of a request that can be run; else the errors of `estimate_repeval`."""
    golden = store.goldens.load(request.golden_id)
    if request.aspect not in golden.aspects:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}.")
    if not request.model.name.strip():
        raise UsageError("No model is named; give minilm, a Hugging Face id, or a folder on the worker's machine.")
    if problem := lacks_other_text(golden.items, request.extraction):
        raise UsageError(problem)
    template_text(request.extraction.template)
    parts = split_three(golden, request.aspect, request.settings, split_of(store, golden, request))
    return golden, parts, pairs_for(golden, request.aspect, parts, request.settings)


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
    device, name = request.model.device, request.model.name
    return device in ("cuda", "mps") or (name != EMBEDDED and device != "cpu")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_repeval(work: RunWork) -> RepEvalOutcome:
    """Read, search, and enter the score among the judges."""
    request, golden = work.request(RepEvalRequest), work.golden
    split = split_of(work.store, golden, request)
    reading = Reading(work, request)
    settings, aspect, beat = request.settings, request.aspect, reading.beat

    def searched(states: States) -> RepEvalResult:
        result = run(golden, aspect, states, settings, split=split, on_progress=beat)
        return replace(result, scorer=scorer_of(golden, states, result))

    try:
        reading.read_all()
        reading.publish("search", "searching layers and tokens on the validation items")
        result = work.kept("search", RepEvalResult)  # of an earlier attempt
        if result is None:
            result = searched(reading.states())
            work.keep("search", result)
        reading.publish("done", "done")
    finally:
        reading.close()
    judge_id = work.add_judge(judge_of(result, golden, work.run.run_id))
    return RepEvalOutcome(result, judge_id)


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


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


class Reading:
    """Texts through the model, longest first, part by part."""

    def __init__(self, work: RunWork, request: RepEvalRequest) -> None:
        """Count the tokens of every text.  JobError where the model was changed since an earlier attempt."""
        self._work = work
        self._machines = Machines(request.model, work.settings.ray, work.settings.remote_code)
        self._states: States | None = None
        self._total = 0
        self.publish("plan", "counting tokens")
        self._plan = self._machines.plan(work.golden.items, request.extraction, work.settings.home)
        identity = self._plan.facts.fingerprint
        self._so_far = work.kept("states read", ReadSoFar) or ReadSoFar(identity)
        if self._so_far.identity != identity:
            raise JobError(
                f"The model {self._plan.facts.name} was changed since this run began, so that old and new states would "
                "be mixed. Start the run anew: the states of the model as it is now are kept apart."
            )

    def publish(self, phase: str, message: str) -> None:
        """Show the phase, with all texts read that were."""
        self._work.progress.publish(Stage(phase, message, self._total, self._total))

    def beat(self, _done: int = 0, _of: int = 0) -> None:
        """No texts were read; only whether the run must stop."""
        self._work.progress.advance(0, 0)

    def read_all(self) -> None:
        """Read every part that no earlier attempt has read."""
        parts, done = self._parts(), 0
        total = sum(rows.size for rows in parts)
        for number, rows in enumerate(parts):
            self._work.progress.publish(Stage("read", self._pace(parts[number:]), done, total))
            if number >= len(self._so_far.parts):
                self._so_far = replace(self._so_far, parts=(*self._so_far.parts, self._read(rows)))
                self._work.keep("states read", self._so_far)
            done += rows.size
        self._total = total

    def states(self) -> States:
        """The states from the files (what is not there is computed again), with the effort of the whole run."""
        if self._states is None:
            parts = self._so_far.parts
            tokens, seconds = sum(part.tokens for part in parts), sum(part.seconds for part in parts)
            for batch in self._machines.compute(self._plan, None, self.beat):
                self.beat()
                tokens, seconds = tokens + batch.tokens, seconds + batch.seconds
            self._states = replace(
                collect(self._plan),
                cached=sum(part.cached for part in parts),
                tokens=tokens,
                seconds=seconds,
                n_halved=max(self._plan.n_halved, sum(part.n_halved for part in parts)),
            )
            self._machines.release()  # the search needs the memory more
        return self._states

    def close(self) -> None:
        """Let go of the weights and the states."""
        self._machines.release()
        self._states = None

    def _parts(self) -> list[IntArray]:
        """Rows of prompts, longest first as batches are made; parts that were read stay as they were cut.

        How many texts make a part depends on the machine, and a run may be taken up again on another one.
        """
        read = dict(enumerate(part.texts for part in self._so_far.parts))
        lengths = np.array([len(ids) for ids in self._plan.prompts], dtype=np.intp)
        order = np.argsort(-lengths, kind="stable")
        parts: list[IntArray] = []
        start = 0
        while start < order.size:
            longest = max(int(lengths[order[start]]), 1)
            size = read.get(len(parts), BATCHES * self._machines.slots * self._plan.budget // longest)
            parts.append(order[start : start + max(1, size)])
            start += len(parts[-1])
        return parts

    def _read(self, rows: IntArray) -> ReadPart:
        plan = self._plan
        before, n_halved = len(rows) - int(np.isin(rows, plan.missing()).sum()), plan.n_halved
        done, tokens, seconds = before, 0, 0.0

        def report() -> None:
            self._work.progress.advance(done, 0)

        report()
        for batch in self._machines.compute(plan, rows, report):
            done, tokens, seconds = done + len(batch.rows), tokens + batch.tokens, seconds + batch.seconds
            report()
        return ReadPart(len(rows), before, tokens, seconds, plan.n_halved - n_halved)

    def _pace(self, parts_left: list[IntArray]) -> str:
        """Tokens a second so far and the time left at that pace."""
        where = self._machines.where(self._plan)
        tokens = sum(part.tokens for part in self._so_far.parts)
        seconds = sum(part.seconds for part in self._so_far.parts)
        if not seconds:
            return f"reading texts on {where}"
        left = sum(len(self._plan.prompts[row]) for rows in parts_left for row in rows) * seconds / tokens
        minutes, rest = divmod(round(left), 60)
        time_left = f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
        return f"reading texts on {where}: {tokens / seconds:,.0f} tokens/s, about {time_left} left"
