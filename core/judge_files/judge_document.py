"""What stands in `judge.yaml`: what scoring, rechecking and other tools read, field by field; nothing else is allowed.

A file's content is passed on as plain JSON types (a card), for its digest is made of them; what scoring needs is read
out of these models.  What only people read (provenance, split, work, evidence) is an object as it was written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from core.judge_files.document_parts import (
    AlignmentEntry,
    Count,
    Document,
    GoldenEntry,
    HowAsked,
    Intervals,
    Name,
    Part,
    Prompt,
    Scalar,
    ScoreMap,
    State,
    TaskEntry,
    Text,
    TextsEntry,
)


class JudgeDescription(Part):
    """The judge's own state, out of which it is made again: the offline judge keeps the scaling of its features, one
    behind an endpoint its model and how it is asked."""

    spec: str = Field(min_length=1, max_length=2000)
    """offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED].

    Without user name, password or key."""
    notice: str = ""
    """What this judge is, in a sentence."""
    model: str = ""
    """The model's name at its endpoint."""
    revision: str | None = Field(None, max_length=200)
    """Which revision of the model: a commit of its weights or a dated snapshot."""
    sampling: HowAsked | None = None
    """How a score is asked for: output (form of the reply), samples, temperature, top_p, max_tokens, names and versions
    of the prompts, persona, steps, weighted, structured, references."""
    effort: str = Field("", max_length=20)
    """How long the model was asked to think; empty for its own way."""
    extra: str = Field("", max_length=4000)
    """Further fields of each request, a JSON object; empty for none."""
    room: Annotated[int, Field(ge=0, le=16_384)] = 0
    """Tokens beyond max_tokens that the model was given, since its thoughts had used the limit up."""
    sent_without: list[str] = Field([])
    """What of the sampling was not sent when the judge was calibrated: its endpoint did not take it."""
    scaling: dict[str, Any] | None = None
    """Of the offline judge: centre and spread of each text feature and concept, learnt without labels."""


class CriteriaText(Part):
    """Scoring rules in natural language."""

    id: str
    """c and 12 hex digits of aspect and text: equal texts, equal id."""
    text: Text
    """The rules, in full."""
    provenance: dict[str, Any] = Field({})
    """Where the criteria came from; what is empty is left out."""


class BothParts(Part):
    """The same measurement on calibration and on held-out items."""

    calibration: AlignmentEntry | None = None
    """On the items that chose the criteria: optimistic."""
    held_out: AlignmentEntry | None = None
    """On the items that no choice has seen."""


class AlignmentsEntry(Part):
    """How well the judge agreed with the people."""

    calibration: AlignmentEntry
    """On the items that chose the criteria: optimistic."""
    held_out: AlignmentEntry
    """On the items that no choice has seen: the figure to quote."""
    best_single: BothParts | None = None
    """The best of the criteria alone."""
    no_criteria: BothParts | None = None
    """The same judge without criteria: what calibration is measured against."""
    gain: dict[str, Any] | None = None
    """The calibrated judge minus the one without criteria on held-out items: whether the criteria bring anything."""


class Decision(Part):
    """A person's decision on a version of the judge."""

    state: State
    """What the version became."""
    by: str = ""
    """Who decided; empty for nobody."""
    at: str | None = None
    """When: ISO 8601."""
    reason: str = ""
    """Why, in the person's words."""
    evidence: dict[str, Any] | None = None
    """The measurement that the decision rests on: run, side, alignment."""


class CriteriaDecision(Decision):
    """The last decision on one of the criteria."""

    criteria: str
    """Id of the criteria."""


class VersionEntry(Part):
    """Which version of the judge this is: its model, prompt, sampling and criteria as they were kept together."""

    id: Name
    """Id of the version where it is kept."""
    number: Annotated[int, Field(ge=1)]
    """Versions of the judge of this aspect, counted from 1."""
    state: State
    """Where it stands: draft, proposed, approved, current or retired."""
    parent: Name | None = None
    """Id of the version that it was made of; null for the first."""
    author: str = ""
    """Who made it; empty for a calibration."""
    note: str = ""
    """What changed, in a sentence."""
    approvals: list[Decision] = Field([])
    """Decisions on it, oldest first."""


class JudgeDocument(Document):
    """A judge calibrated with Concord: all that scoring needs and all that trust in it needs.

    Written as YAML (JSON is read too). It never holds a key or a password.
    """

    format: Literal["concord-judge"]
    """Says that this is a judge file."""
    task: TaskEntry
    judge: JudgeDescription
    prompts: dict[str, Prompt]
    """Purpose (score, draft, refine, persona) to the name and version of the prompt text that Concord ships.

    Empty for a judge that is asked nothing in words (the offline one)."""
    parser: Name | None
    """Name and version of what reads a score out of a reply; null for a judge whose scores are computed."""
    join: Literal["mean"]
    """How the scores of several criteria become one: their mean."""
    criteria: list[CriteriaText] = Field(min_length=1, max_length=100)
    """The criteria of the judge; several are an ensemble, best first."""
    approved: bool
    """Whether every one of the criteria was approved by a person."""
    approvals: list[CriteriaDecision]
    """Where each of the criteria stands with the people."""
    judge_version: VersionEntry | None = None
    isotonic: ScoreMap | None
    """Strictly rising map from the judge's score to the human scale, by its corners: x, y, low, high.

    null: scores are used as they come."""
    intervals: Intervals | None = None
    """What the interval around a verdict is made of: cross-fitted errors on calibration, by source."""
    alignment: AlignmentsEntry
    ceiling: AlignmentEntry | None
    """How well one person agrees with the mean of the others, at the statistic and level of the held-out alignment.

    About the best that can be hoped for. null when unknown, e.g. without single ratings."""
    golden: GoldenEntry
    split: dict[str, Any]
    """How the golden set was divided: kind, seed, n_calibration, n_held_out."""
    held_out_opened: Count | None
    """How often anybody's run looked at the held-out items of this aspect up to the export.

    The more often, the less they are unseen. null when nobody counted (the command line)."""
    people: dict[str, Scalar] = Field({})
    """Counts of what people did: edits, votes, comments and the like."""
    settings: dict[str, Scalar]
    """Settings of the calibration, by name: with the golden set and the same judge they repeat it."""
    calls: Count | None = None
    """Calls that the calibration made."""
    work: dict[str, Any]
    """What was asked for and what was done; a budget may have cut it."""
    warnings: list[str]
    """What whoever uses the judge should know, in sentences.

    Few or skewed labels, criteria without approval, a run that stopped early."""
    texts: TextsEntry
