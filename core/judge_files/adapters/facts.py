"""Prepare the content of a judge file for the adapters: facts, prompts, escaped literals and comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING, Any

from core.errors import JudgeError, UsageError
from core.judge_files.documents import FORMATS, document_of
from core.judging.judge_specs import endpoint_of_file, parse_spec
from core.judging.scoring_styles import (
    KINDS,
    SCORING,
    USUAL_TOKENS,
    Style,
    checked_extra,
    item_block,
    levels_block,
    neutral,
    plain,
    score_frame,
)
from core.records import Alignment, Item, ItemKind, Task
from core.stats import IsotonicMap

if TYPE_CHECKING:
    from core.judge_files.documents import JudgeDocument

BODIES = Path(__file__).parent / "bodies"
WIDTH = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

NO_MODEL = ("offline", "scripted")
"""Kinds of judges that other tools cannot call."""

_PARTS: Mapping[ItemKind, tuple[str, ...]] = {
    "source_target": ("target", "source"),
    "data_text": ("target", "source"),
    "source_context_target": ("target", "source", "context"),
}


@dataclass(frozen=True)
class JudgeFacts:
    """The content of a judge file, prepared for adapters.

    Attributes:
        criteria: Criteria texts, best first.
        model: The judge's language model; "" if other tools cannot call the judge. In this case `sampling` has the
            defaults and `isotonic` is None, because the map was fitted to scores of another model.
        key_goes: Whether OPENAI_API_KEY may be sent to `base_url`. The URL comes from the file and cannot be trusted.
        isotonic: Map from scores to the raters' scale.
        parts: The parts of an item that the judge needs, such as "source" and "target".
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
        """The aspect's name as in Concord's prompts: on one line, without control characters."""
        return " ".join(plain(self.task.aspect).split())

    @property
    def scale(self) -> tuple[float, float]:
        return float(self.task.scale.low), float(self.task.scale.high)

    @property
    def map(self) -> dict[str, Any] | None:
        return None if self.isotonic is None else self.isotonic.as_json()

    @property
    def max_tokens(self) -> int:
        """Token limit for other tools. It includes room for reasoning, which other tools don't add."""
        return self.sampling.max_tokens + self.document.judge.room

    @property
    def tokens_with_reasons(self) -> int:
        """Token limit for a tool that asks for JSON with reasons, which may be longer than the judge's own replies."""
        return max(self.max_tokens, USUAL_TOKENS + self.document.judge.room)

    @property
    def temperature_words(self) -> str:
        heat = self.sampling.temperature
        return "no temperature (the model's default)" if heat is None else f"temperature {heat:g}"

    @property
    def lines(self) -> list[str]:
        """Return task, judge, alignment, approval and warnings, one per line."""
        document, measured, version = self.document, self.document.alignment, self.document.judge_version
        baseline = (measured.no_criteria or {}).get("held_out")
        signed = [one for one in (version.approvals if version else document.approvals) if one.state == "approved"]
        who = f" ({signed[-1].by or 'somebody'}, {signed[-1].at or 'undated'})" if document.approved and signed else ""
        return [
            f"Aspect: {self.task.aspect}, on the scale {self.task.scale}. Number of sets of criteria: "
            f"{len(self.criteria)}.",
            f"Judge: {document.judge.spec}. Golden set: {document.golden.name or 'unnamed'}.",
            f"Judge file: created {document.created or 'at an unknown time'}, {document.digest or 'no digest'}.",
            *([f"Version {version.number} of this judge ({version.id}), {version.state}."] if version else []),
            f"Alignment with raters on held-out items: {_words(measured.held_out)}.",
            f"Alignment of the baseline, without criteria: {_words(baseline)}.",
            f"{'Approved' if document.approved else 'NOT approved'} by a reviewer{who}.",
            *(f"Warning: {one}" for one in document.warnings if not one.startswith("No one has approved")),
        ]


def facts_of(card: Mapping[str, Any]) -> JudgeFacts:
    """Return the facts of a judge card. Raises JudgeError for a fused judge, a judge of pairs, or a damaged card."""
    if card.get("format") == FORMATS["fusion"]:
        raise JudgeError(
            "Files for other tools can't contain the parts and weights of a fused judge. Score with "
            "'python -m core score --judge-file', or adapt the judge.yaml file of one part."
        )
    document: JudgeDocument = document_of(card)
    task, judge = document.task.as_task(), document.judge
    if task.kind == "pair":
        raise JudgeError(
            "This judge rates pairs of texts in both orders, which files for other tools can't express. Score with "
            "'python -m core score --judge-file'."
        )
    if judge.sampling and judge.sampling.form == "clauses":
        raise JudgeError(
            "This judge rates each clause of its criteria separately and combines the ratings, which the files of "
            "other tools can't express. Score with 'python -m core score --judge-file'."
        )
    if not plain(task.aspect).strip():
        raise JudgeError("The aspect of this judge has no name. Export the judge again.")
    try:
        spec, base_url, key_goes = parse_spec(judge.spec), "", True
        model = "" if spec.kind in NO_MODEL else judge.model
        if spec.kind == "openai":
            model, (base_url, key_goes) = spec.model, endpoint_of_file(spec.base_url)
        checked_extra(judge.extra)
    except UsageError as error:
        raise JudgeError(f"Can't use the judge of this file: {error}") from error
    sampling = judge.sampling if judge.sampling and model else Style()
    if sampling.nearest:  # an exported file cannot find the examples most similar to an item
        sampling = replace(sampling, examples=(), nearest=0)
    named = document.task.needs or _PARTS.get(task.kind, ("target",))
    parts = [part for part in named if part != "references"] + ["references"] * sampling.references
    return JudgeFacts(
        document,
        task,
        tuple(neutral(criteria.text) for criteria in document.criteria),
        model,
        base_url,
        key_goes,
        sampling,
        document.isotonic if model else None,
        tuple(parts),
    )


def _words(alignment: Alignment | None) -> str:
    """Describe an alignment, such as "spearman 0.612 at sample level, 95 % interval 0.541 to 0.683, n = 120"."""
    if alignment is None:
        return "unknown"
    value, ends = alignment.value, alignment.interval
    interval = f"95 % interval {ends.low:.3f} to {ends.high:.3f}" if ends else "no interval"
    unscored = f", {alignment.n_unscored} unscored" if alignment.n_unscored else ""
    figure = "—" if value is None else f"{value:.3f}"
    return f"{alignment.statistic} {figure} at {alignment.level} level, {interval}, n = {alignment.n}{unscored}"


def open_prompts(facts: JudgeFacts) -> tuple[dict[str, Any], ...]:
    """Return one prompt per criteria text, with a gap for the item.

    Each prompt is a dictionary:

    - "criteria": index of the criteria text.
    - "leading": earlier messages, such as a persona, as (role, content).
    - "before" and "after": the user message before and after the item.
    - "form": form of the reply, with the suffix "_json" if the reply must follow a JSON schema.
    - "schema": the JSON schema; "" for free text.
    - "samples": number of replies to average.
    """
    how = facts.sampling
    shown = (how.steps, levels_block(facts.task), *(each.item.target for each in how.examples))
    item = Item("", unused("[item %s]", (facts.task.definition, *shown, facts.task.aspect, *facts.criteria)))
    block = item_block(facts.task.kind, item, SCORING)
    frame = score_frame(facts.task, item, how.prompt, steps=how.steps, persona=how.persona, examples=how.examples)
    prompts = []
    for number, criteria in enumerate(facts.criteria):
        *first, last = frame.messages(criteria)
        before, after = last.content.split(block)
        prompt = {
            "criteria": number,
            "leading": tuple((message.role, message.content) for message in first),
            "before": before,
            "after": after,
            "form": f"{how.form}_json" if how.schema else how.form,
            "schema": how.schema,
            "samples": how.samples,
        }
        prompts.append(prompt)
    return tuple(prompts)


def headings(facts: JudgeFacts) -> dict[str, str]:
    """Return a dict from each part of an item to its heading in prompts, in the order of the prompts."""
    words = KINDS[facts.task.kind]
    named = {
        "source": words.source,
        "context": words.context,
        "references": "Reference",
        "target": f"{words.target} to rate",
    }
    return {part: heading for part, heading in named.items() if part in facts.parts or part == "target"}


def unused(form: str, texts: Iterable[str]) -> str:
    """Return the first of the markers `form % ""`, `form % 2`, `form % 3`, … that occurs in none of the texts."""
    whole = "\0".join(texts)
    return next(mark for number in chain([""], count(2)) if (mark := form % number) not in whole)


# ── untrusted text in generated files ────────────────────────────────────────────────────────────────────────────
# Criteria, aspect names, definitions and warnings come from users and models.  They enter a generated file only through
# these functions: as literals, comments or JSON, never as code.  The rest of such a file is fixed text.


def body_of(name: str) -> str:
    """Return the fixed part of the generated file called `name`."""
    return (BODIES / f"{name}.txt").read_text(encoding="utf-8")


def one_line(text: str) -> str:
    """Return `text` on one line. Invisible characters (control and direction marks) become "?"."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def comment(lines: Iterable[str]) -> str:
    """Return `lines` as Python or YAML comments, with long lines wrapped."""
    rows = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip(" ")))
        further = f"{indent}  " if line.lstrip(" ").startswith("- ") else indent
        rows += textwrap.wrap(one_line(line), WIDTH, initial_indent=indent, subsequent_indent=further) or [""]
    return "\n".join(f"# {row}".rstrip(" ") if row else "#" for row in rows)


def constants(values: Mapping[str, Any]) -> str:
    """Return Python source that assigns each value, as a literal, to its name. The names must be trusted."""
    return "\n".join(f"{name} = {literal(value)}" for name, value in values.items())


def literal(value: Any) -> str:
    """Return Python source from which `ast.literal_eval` restores `value`."""
    return pformat(value, width=WIDTH, sort_dicts=False)


def javascript(value: Any) -> str:
    """Return `value` as a JavaScript literal (JSON).

    Braces in texts are escaped, because promptfoo reads ``{{ }}`` as a template.
    """

    def escaped(text: re.Match[str]) -> str:
        return "".join(
            letter
            if letter.isprintable() and letter not in "{}"
            else json.dumps(letter)[1:-1]
            if ord(letter) > 127
            else f"\\u{ord(letter):04x}"
            for letter in text[0]
        )

    return _STRING.sub(escaped, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
