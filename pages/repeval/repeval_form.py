"""Form that starts RepEval: model, texts, method, measure, and an estimate of the time."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core import projects
from core.project_records import GoldenSummary
from core.projects.method_runs import METHOD_NAMES, RepEvalEstimate, RepEvalRequest
from core.repeval import (
    EMBEDDED,
    Extraction,
    Method,
    ModelSpec,
    RepEvalSettings,
    templates,
    usual_texts,
)
from core.report.figures import LEVEL_NAMES
from core.wording import counted, duration
from pages.compare.choices import cached_golden
from pages.ui import setting_form
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

OWN = "own"
HYPOTHESIS, TEMPLATE = "the text alone", "in a prompt"
COMPARED = "the text and its distance from the source"
METHOD_HELP = (
    "A cell is one token at one layer of the model. Ridge agrees best with raters on most data. It learns from all "
    "labels outside the test set, and averages the 20 cells that do best in cross-validation. The other two methods "
    "follow the RepEval paper: they use one cell, and a few pairs of good and bad texts."
)
TEXT_HELP = (
    "MiniLM agrees best with raters if it reads the text, source and context separately. RepEval then also learns "
    "from the distances between them."
)
SLOW, FAST = 1_000, 6_000  # tokens per second with MiniLM on two CPU cores, busy and idle
TOKENS_A_WORD = 1.4


def choose(page: Opened, golden: GoldenSummary, aspect: str) -> RepEvalRequest:
    """Draw the form and return its request. The defaults always make a valid request."""
    first, second, third = st.columns([3, 3, 3], gap="medium")
    with first:
        model = _model()
    with second:
        reading = _texts(golden, aspect, model)
    with third:
        known = cached_golden(golden.golden_id, page)
        usual = projects.default_measure(page.store, page.project.project_id, known, aspect)
        method: Method = st.selectbox(
            "Method",
            list(METHOD_NAMES),
            format_func=METHOD_NAMES.__getitem__,
            key=widget("repeval_method"),
            help=METHOD_HELP,
        )
        settings = RepEvalSettings(method, model, reading, statistic=usual.statistic, level=usual.level)
    with st.expander("More options: measure, split", icon=":material/tune:"):
        return _more(page, RepEvalRequest(page.project.project_id, golden.golden_id, aspect, settings))


def _model() -> ModelSpec:
    words = {EMBEDDED: "MiniLM (comes with Concord)", OWN: "another model"}
    chosen = st.selectbox("Model", list(words), format_func=lambda model: words[model], key=widget("repeval_model"))
    if chosen != OWN:
        return ModelSpec()
    name = st.text_input(
        "Hugging Face ID, or folder on the worker's machine",
        key=widget("repeval_model_name"),
        placeholder="mistralai/Mistral-7B-v0.1",
        help=(
            "Use a causal language model or an encoder stored as safetensors. The worker loads it, on a GPU if one "
            "is available."
        ),
    )
    revision = st.text_input("Revision (branch, tag or commit)", key=widget("repeval_revision"))
    return ModelSpec(name.strip(), revision.strip() or None)


def _texts(golden: GoldenSummary, aspect: str, model: ModelSpec) -> Extraction:
    modes = [HYPOTHESIS, TEMPLATE]
    if golden.kind != "single":
        modes.insert(0 if usual_texts(model.name) == "compared" else 2, COMPARED)  # the default first
    mode = st.selectbox("Texts to read", modes, key=widget("repeval_texts"), help=TEXT_HELP)
    if mode == COMPARED:
        return Extraction(texts="compared")
    if mode == HYPOTHESIS:
        return Extraction()
    known = templates()
    name = st.selectbox("Prompt", list(known), key=widget("repeval_template"))
    st.code(known[name], language=None, wrap_lines=True)
    return Extraction(template=name, criterion=aspect)


def _more(page: Opened, request: RepEvalRequest) -> RepEvalRequest:
    settings, prefix = request.settings, f"repeval_{request.golden_id[-12:]}_{request.aspect}_"
    usual = {"statistic": settings.statistic, "level": settings.level or "dataset"}
    labels = {"statistic": "Measure", "level": "Level", "seed": "Seed"}
    words = {"level": LEVEL_NAMES}
    measure = setting_form.draw(RepEvalSettings, labels, prefix=prefix, usual=usual, words=words)
    st.caption("Concord chooses cells and reports agreement at this level. The default is the current judge's level.")
    return replace(request, settings=replace(settings, **measure), split_of=_split(page, request))


def _split(page: Opened, request: RepEvalRequest) -> str:
    """Let the user choose a calibration that provides the held-out items; return its id, or "" for a new split."""
    runs = projects.judge_runs(page.store, request.project_id, request.golden_id, request.aspect)
    runs = [run for run in runs if run.kind == "calibration"]
    words = {"": "a new split, with 40 % of the sources for testing", **{run.run_id: f"as {run.title}" for run in runs}}
    chosen: str = st.selectbox(
        "Split",
        list(words),
        format_func=lambda run_id: words[run_id],
        key=widget(f"repeval_split_{request.golden_id[-12:]}_{request.aspect}"),
        help=(
            "If you reuse a calibration's split, Concord tests RepEval on the calibration's held-out items, and "
            "trains it only on the other items."
        ),
    )
    return chosen


def draw_estimate(page: Opened, request: RepEvalRequest) -> None:
    """Draw the numbers of texts and labels and the duration of the run. Raises ConcordError if the run can't start."""
    estimate, settings = _estimate(repr(request), page, request), request.settings
    pairs = f", {estimate.n_pairs} pairs" if settings.uses_pairs else ""
    choosing = f", {estimate.n_validation} to choose the layer and token"
    if not settings.uses_pairs:
        choosing = " and to choose cells by cross-validation"
    took = "The time depends on the model and the worker's device. The run shows tokens per second and the time left."
    if settings.model.name == EMBEDDED:
        tokens = estimate.n_words * TOKENS_A_WORD
        low, high = duration(tokens / FAST + 5), duration(tokens / SLOW + 15)
        took = f"This takes about {low} to {high} on a CPU. Cached texts take no time."
    st.markdown(
        plain(
            f"{counted(estimate.n_texts, 'text')} with {estimate.n_words:,} words to read. {estimate.n_train} labels "
            f"to learn from{pairs}{choosing}, {estimate.n_test} to measure the result. {took}"
        )
    )


@st.cache_resource(max_entries=32, show_spinner=False)
def _estimate(key: str, _page: Opened, _request: RepEvalRequest) -> RepEvalEstimate:
    """Return the estimate, cached because golden sets never change under their id."""
    return projects.estimate_repeval(_page.store, _page.settings, _request)
