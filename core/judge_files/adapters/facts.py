"""A judge card as the adapters need it: what can be said about it in lines, and its prompts with the item left open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from core.errors import JudgeError, UsageError
from core.judge_files.judge_reading import FORMATS, judge_document
from core.judging.judge_specs import endpoint_of_file, parse_spec
from core.judging.render import KINDS, SCORING, OutputForm, item_block, neutral, plain, score_frame
from core.judging.scoring_styles import HARMLESS_FIELDS, USUAL_TOKENS, Style, checked_extra
from core.records import Item, ItemKind, Task
from core.stats import IsotonicMap

if TYPE_CHECKING:
    from core.judge_files.document_parts import AlignmentEntry
    from core.judge_files.judge_document import JudgeDescription, JudgeDocument


NO_MODEL = ("offline", "scripted")
"""Kinds of judges whose scores come from no model that another tool could ask."""

_PARTS: Mapping[ItemKind, tuple[str, ...]] = {
    "source_target": ("target", "source"),
    "data_text": ("target", "source"),
    "source_context_target": ("target", "source", "context"),
}


@dataclass(frozen=True)
class JudgeFacts:
    """What a judge file says: the task, the texts of the criteria (best first), the model and how it is asked.

    `model` is "" where the judge is no language model that another tool can ask; `sampling` then has the defaults.
    `key_goes` says whether OPENAI_API_KEY may be sent to `base_url`, which comes out of the file and may be anybody's.
    `parts` are the parts of an item that every item of the calibration had.
    """

    document: JudgeDocument
    task: Task
    criteria: tuple[str, ...]
    model: str
    base_url: str
    key_goes: bool
    sampling: Style
    isotonic: IsotonicMap | None
    parts: tuple[str, ...]

    @property
    def aspect(self) -> str:
        """The aspect's name as Concord's prompts show it: one line, no control characters."""
        return " ".join(plain(self.task.aspect).split())

    @property
    def told(self) -> dict[str, Any]:
        """What each request says besides, as fields: of a judge file's extra body the harmless ones alone."""
        judge = self.document.judge
        extra = {name: value for name, value in json.loads(judge.extra or "{}").items() if name in HARMLESS_FIELDS}
        return ({"reasoning_effort": judge.effort} if judge.effort else {}) | extra

    @property
    def untold(self) -> tuple[str, ...]:
        """Fields of the extra body that a file alone may not set: they may cost, keep or fetch something."""
        return tuple(sorted(json.loads(self.document.judge.extra or "{}").keys() - HARMLESS_FIELDS))

    @property
    def max_tokens(self) -> int:
        """The limit to send: no other tool raises it where thoughts use it up."""
        return self.sampling.max_tokens + self.document.judge.room

    @property
    def tokens_with_reasons(self) -> int:
        """The limit where a tool asks in its own form: JSON with reasons, longer than some forms of ours."""
        return max(self.sampling.max_tokens, USUAL_TOKENS) + self.document.judge.room

    @property
    def temperature_words(self) -> str:
        """The temperature for people: "temperature 0", or that none is sent."""
        heat = self.sampling.temperature
        return "no temperature (the model's own)" if heat is None else f"temperature {heat:g}"

    @property
    def is_llm(self) -> bool:
        """Whether the judge's scores come from a model that another tool can ask too."""
        return bool(self.model)

    @property
    def fitted_map(self) -> IsotonicMap | None:
        """The map to the human scale, where the scores are those that it was fitted on."""
        return self.isotonic if self.is_llm else None

    @property
    def lines(self) -> list[str]:
        """Task, judge, alignment, approval and warnings, a line each."""
        document = self.document
        return [
            f"Aspect: {self.task.aspect}, on the scale {self.task.scale}; criteria: {len(self.criteria)}.",
            f"Judge: {document.judge.spec}. Golden set: {document.golden.name or 'unnamed'} "
            f"({document.golden.digest or 'no hash'}).",
            f"Judge file: written {document.created or 'at an unknown time'}, {document.digest or 'without digest'}.",
            *_version(document),
            *_alignments(document),
            _approval(document),
            *(f"Warning: {words}" for words in document.warnings if not words.startswith("Nobody has approved")),
        ]


def facts_of(card: Mapping[str, Any]) -> JudgeFacts:
    """The facts of a judge card.  JudgeError for a fused judge, and for a card that is damaged."""
    if card.get("format") == FORMATS["fusion"]:
        raise JudgeError(
            "This is a fused judge: its parts and weights have no place in another tool's file. Score with "
            "'python -m core score --judge-file', or adapt the judge.yaml of one of its parts."
        )
    document = judge_document(card, "judge file")
    task, judge = document.task.as_task(), document.judge
    if task.kind == "pair":
        raise JudgeError(
            "This judge rates pairs of texts and asks both ways round, which the files of other tools cannot say. "
            "Score with 'python -m core score --judge-file'."
        )
    if not plain(task.aspect).strip():
        raise JudgeError("The aspect of this judge has no name. Export it again.")
    try:
        model, base_url, key_goes = _model(judge)
        sampling = judge.sampling if judge.sampling and model else Style()
        checked_extra(judge.extra)
    except UsageError as error:
        raise JudgeError(f"The judge of this file cannot be asked: {error}") from error
    return JudgeFacts(
        document,
        task,
        tuple(neutral(criteria.text) for criteria in document.criteria),
        model,
        base_url,
        key_goes,
        sampling,
        document.isotonic,
        _parts_shown(document.task.needs or _PARTS.get(task.kind, ("target",)), references=sampling.references),
    )


def _parts_shown(parts: Sequence[str], *, references: bool) -> tuple[str, ...]:
    """`parts`, with references where the judge was made with them, and only there."""
    return (*(part for part in parts if part != "references"), *["references"] * references)


def _model(judge: JudgeDescription) -> tuple[str, str, bool]:
    """(model, base URL, whether the key may go there) that a tool can ask.

    Both empty where there is no model, the URL also where it is OpenAI's own.
    """
    spec = parse_spec(judge.spec)
    if spec.kind == "openai":
        return spec.model, *endpoint_of_file(spec.base_url)
    weighs_the_text = judge.sampling is not None and judge.sampling.form == "likelihood"  # as no other tool can
    return "" if spec.kind in NO_MODEL or weighs_the_text else judge.model, "", True


def _version(document: JudgeDocument) -> Iterable[str]:
    """Which version of the judge this is, and who decided what on it."""
    if version := document.judge_version:
        decided = "".join(f"; {approval.state} by {approval.by}, {approval.at}" for approval in version.approvals)
        yield f"Version {version.number} of this judge ({version.id}), {version.state}{decided}."


def alignment_words(alignment: AlignmentEntry | None) -> str:
    """E.g. "spearman 0.612 at sample level, 95 % interval 0.541 to 0.683, n = 120"; "unknown" for None."""
    if alignment is None:
        return "unknown"
    value, interval = alignment.value, alignment.interval
    words = f"{alignment.statistic} {'—' if value is None else f'{value:.3f}'} at {alignment.level} level"
    words += f", 95 % interval {interval[0]:.3f} to {interval[1]:.3f}" if interval else ", no interval"
    unscored = f", {alignment.n_unscored} unscored" if alignment.n_unscored else ""
    return f"{words}, n = {alignment.n}{unscored}"


def _alignments(document: JudgeDocument) -> Iterable[str]:
    measured = document.alignment
    plain_judge = measured.no_criteria.held_out if measured.no_criteria else None
    yield f"Alignment with people on held-out items: {alignment_words(measured.held_out)}."
    yield f"The same judge without criteria there: {alignment_words(plain_judge)}."
    yield f"On the calibration items (which chose the criteria): {alignment_words(measured.calibration)}."
    if document.ceiling:
        yield (
            f"One person against the mean of the others (ceiling): {alignment_words(document.ceiling)}. It is a harder "
            "target than the mean of all, so the judge's figure above must not be held against it."
        )


def _approval(document: JudgeDocument) -> str:
    if version := document.judge_version:
        signed = [decision for decision in version.approvals if decision.state == "approved"]
        if document.approved and signed:
            return f"Approved by people ({signed[-1].by or 'somebody'}, {signed[-1].at})."
        return f"{'Approved' if document.approved else 'NOT approved'} by people (version {version.number})."
    states = ", ".join(
        f"{approval.criteria}: {approval.state}{f' by {approval.by}' if approval.by else ''}"
        for approval in document.approvals
    )
    return f"{'Approved' if document.approved else 'NOT approved'} by people ({states or 'nobody was asked'})."


@dataclass(frozen=True, slots=True)
class OpenPrompt:
    """One scoring prompt for one of the criteria: the user message is `before` + the item's block + `after`.

    `leading` are (role, content) of the messages before it (a persona).  `form` tells how the reply states its number,
    `schema` is the JSON schema to ask for or "", `samples` how many replies are averaged.
    """

    criteria: int
    leading: tuple[tuple[str, str], ...]
    before: str
    after: str
    form: OutputForm
    schema: str
    samples: int


def open_prompts(facts: JudgeFacts) -> tuple[OpenPrompt, ...]:
    """Every prompt that scoring one item takes, criteria by criteria; their samples weigh alike within one of them."""
    mark = unused("[item %s]", (facts.task.definition, facts.sampling.steps, facts.task.aspect, *facts.criteria))
    item = Item("", mark)
    block = item_block(facts.task.kind, item, SCORING)
    schemas = {slot.prompt: slot.schema for slot in facts.sampling.slots}
    counts = Counter((slot.prompt, slot.form) for slot in facts.sampling.slots)
    prompts = []
    for number, criteria in enumerate(facts.criteria):
        for (prompt, form), samples in counts.items():
            frame = score_frame(
                facts.task, item, prompt, steps=facts.sampling.steps, persona=facts.sampling.persona
            ).messages(criteria)
            before, after = frame[-1].content.split(block)
            leading = tuple((message.role, message.content) for message in frame[:-1])
            prompts.append(OpenPrompt(number, leading, before, after, form, schemas[prompt], samples))
    return tuple(prompts)


def prompt_fields(prompt: OpenPrompt) -> dict[str, Any]:
    """A prompt as generated code holds it; `form` says also whether the reply is JSON."""
    return asdict(prompt) | {"form": f"{prompt.form}_json" if prompt.schema else prompt.form}


def headings(facts: JudgeFacts) -> Mapping[str, str]:
    """Part of an item → the heading that it stands under in the prompts, in their order."""
    words = KINDS[facts.task.kind]
    named = {
        "source": words.source,
        "context": words.context,
        "references": "Reference",
        "target": f"{words.target} to rate",
    }
    return {part: heading for part, heading in named.items() if part in facts.parts or part == "target"}


def unused(form: str, texts: Iterable[str]) -> str:
    """The first of `form` with "", 2, 3, … in it that stands in none of `texts`."""
    whole = "\0".join(texts)
    return next(mark for number in chain([""], count(2)) if (mark := form % number) not in whole)
