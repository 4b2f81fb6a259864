"""What stands in `judge.yaml`, field by field: read strictly, nothing else allowed.

A file's content is passed on as plain JSON types (a card), for its digest is made of them; what scoring needs is read
out of these models.  A field with a default may be absent; some of those are written only when whoever exports the
judge knows them (`core.export.judge_writing.Known`).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from core.errors import JudgeError
from core.export.document_parts import (
    AlignmentEntry,
    Coordinate,
    Coordinates,
    Count,
    Document,
    Ends,
    GoldenEntry,
    IntervalsEntry,
    Name,
    Part,
    Prompt,
    Scalar,
    Sha256,
    Spread,
    State,
    TaskEntry,
    Text,
    TextsEntry,
)
from core.export.faults import InconsistentError
from core.judging.styles import Sampling
from core.records import Level, Origin, Statistic
from core.stats import IsotonicMap


class SamplingEntry(Part):
    """How a score is asked for."""

    output: Literal["score_only", "free_text", "stars", "rate_explain", "analyze_rate", "mix", "likelihood"] = Field(
        "rate_explain", description="Form of the reply."
    )
    samples: Annotated[int, Field(ge=1, le=200)] = Field(1, description="Replies averaged into one score.")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        0.0, description="Sampling temperature; null where none is sent."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="Share of the probability that tokens are drawn from."
    )
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = Field(512, description="Longest reply.")
    prompt: Prompt = Field("", description="Name and version of the scoring prompt; two of a mix are joined by +.")
    draft_prompt: Prompt = Field("", description="Prompt that drafted criteria.")
    refine_prompt: Prompt = Field("", description="Prompt that refined criteria.")
    persona: Literal["none", "helpful", "annotator"] = Field(
        "none", description="System message in front of the prompt."
    )
    steps: str = Field("", max_length=100_000, description="Evaluation steps shown after the criteria; empty for none.")
    weighted: bool = Field(
        False, description="Whether the score is the mean of the ratings weighted by their token probabilities."
    )
    structured: bool = Field(False, description="Whether the reply is asked for as JSON.")
    references: bool = Field(
        False, description="Whether the judge sees an item's references. It then scores no item without them."
    )

    def as_sampling(self) -> Sampling:
        """How the judge is asked.  UsageError or JudgeError for settings that do not go together."""
        return Sampling.from_state(self.model_dump(exclude_unset=True))


class ScalingEntry(Part):
    """Of the offline judge: centre and spread of each text feature and concept, learnt without labels."""

    n_items: Count = Field(description="Items they were learnt on; 0 for shipped values.")
    features: dict[str, Spread] = Field(description="Feature to [centre, spread].")
    concepts: dict[str, Spread] = Field(description="Concept to [middle, width].")


class LimitsEntry(Part):
    """Limits to keep when the judge is asked, as they were kept in its calibration; null for none."""

    calls: Count | None = Field(None, description="Most calls of one job.")
    cost: Annotated[float, Field(ge=0)] | None = Field(None, description="Most that one job may cost, in US dollars.")
    requests_per_minute: Count | None = Field(None, description="Requests sent in a minute at most.")
    tokens_per_minute: Count | None = Field(None, description="Tokens sent and received in a minute at most.")
    concurrent: Count | None = Field(None, description="Requests under way at the same time at most.")
    timeout_seconds: Annotated[float, Field(gt=0)] | None = Field(None, description="How long one reply is waited for.")


class JudgeDescription(Part):
    """The judge's own state: the offline judge keeps the scaling of its features, one behind an endpoint its model
    and how it is asked."""

    spec: str = Field(
        min_length=1,
        max_length=2000,
        description="offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED]. Without user "
        "name, password or key.",
    )
    notice: str = Field("", description="What this judge is, in a sentence.")
    model: str = Field("", description="The model's name at its endpoint.")
    revision: str | None = Field(
        None, max_length=200, description="Which revision of the model: a commit of its weights or a dated snapshot."
    )
    sampling: SamplingEntry | None = None
    effort: str = Field("", max_length=20, description="How long the model was asked to think; empty for its own way.")
    extra: str = Field(
        "", max_length=4000, description="Further fields of each request, a JSON object; empty for none."
    )
    room: Annotated[int, Field(ge=0, le=16_384)] = Field(
        0, description="Tokens beyond max_tokens that the model was given, since its thoughts had used the limit up."
    )
    sent_without: list[str] = Field(
        [], description="What of the sampling was not sent when the judge was calibrated: its endpoint did not take it."
    )
    scaling: ScalingEntry | None = None
    limits: LimitsEntry | None = None


class ProvenanceEntry(Part):
    """Where criteria came from; what is empty is left out."""

    origin: Origin = Field("given", description="draft, refine, edit, given, or none.")
    round: int = Field(0, description="Round of refining.")
    parents: list[str] = Field(default=[], description="Ids of the criteria they were made of.")
    item_ids: list[str] = Field(default=[], description="Items shown to whoever wrote them.")
    size: int = Field(0, description="How many items were shown.")
    trial: int = Field(0, description="Which choice of items.")
    sample: int = Field(0, description="Which reply to the same request.")
    author: str = Field("", description="The person who wrote them.")
    note: str = Field("", description="What that person noted.")


class ClauseEntry(Part):
    """One rule of the criteria and how much it counts."""

    text: Text = Field(description="The rule, word for word.")
    weight: Coordinate = Field(description="Its weight; those of one criterion need not sum to 1.")


class CriteriaText(Part):
    """Scoring rules in natural language."""

    id: str = Field(description="c and 12 hex digits of aspect and text: equal texts, equal id.")
    text: Text = Field(description="The rules, in full.")
    provenance: ProvenanceEntry | None = None
    clauses: list[ClauseEntry] | None = Field(
        None,
        max_length=1000,
        description="The rules one by one with their weights, where they are known. Scores come from the text alone.",
    )


class DifferenceEntry(Part):
    """One alignment minus another, paired on the items that both judges scored."""

    statistic: Statistic = Field(description="The correlation (Kendall: tau-b).")
    level: Level = Field(description="Over all items, averaged over sources, or over the systems' means.")
    value: float | None = Field(description="The difference; null when it is undefined.")
    n: Count = Field(description="Items that both scored.")
    interval: Ends | None = Field(description="95 % confidence interval.")
    interval_method: str | None = Field(None, description="How the interval was made.")
    p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Two-sided; null where there is no test, as with fewer than 8 sources."
    )
    p_reason: str | None = Field(None, description="Why there is no p.")
    reason: str | None = Field(None, description="Why a value is undefined.")


class BothParts(Part):
    """The same measurement on calibration and on held-out items."""

    calibration: AlignmentEntry | None = Field(None, description="On the items that chose the criteria.")
    held_out: AlignmentEntry | None = Field(None, description="On the items that no choice has seen.")


class AlignmentsEntry(Part):
    """How well the judge agreed with the people."""

    calibration: AlignmentEntry = Field(description="On the items that chose the criteria: optimistic.")
    held_out: AlignmentEntry = Field(description="On the items that no choice has seen: the figure to quote.")
    best_single: BothParts | None = Field(None, description="The best of the criteria alone.")
    no_criteria: BothParts | None = Field(
        None, description="The same judge without criteria: what calibration is measured against."
    )
    gain: DifferenceEntry | None = Field(
        None,
        description="The calibrated judge minus the one without criteria on held-out items: whether the criteria "
        "bring anything.",
    )


class EvidenceEntry(Part):
    """The measurement that an approval rests on."""

    run: str = Field("", description="The run that measured it.")
    side: str = Field("", description="calibration or held-out.")
    alignment: AlignmentEntry | None = None


class ApprovalEntry(Part):
    """The last decision on one of the criteria."""

    criteria: str = Field(description="Id of the criteria.")
    state: Literal["draft", "proposed", "approved", "retired"] = Field(description="Where they stand.")
    by: str = Field("", description="Who decided; empty for nobody.")
    at: str | None = Field(None, description="When: ISO 8601.")
    reason: str = Field("", description="Why, in the person's words.")
    evidence: EvidenceEntry | None = None


class VersionApproval(Part):
    """A person's decision on this version of the judge."""

    by: str = Field(description="Who decided.")
    at: str = Field(max_length=100, description="When: ISO 8601.")
    state: State = Field(description="What the version became.")
    reason: str = Field("", description="Why, in the person's words.")
    evidence: EvidenceEntry | None = None


class VersionEntry(Part):
    """Which version of the judge this is: its model, prompt, sampling and criteria as they were kept together."""

    id: Name = Field(description="Id of the version where it is kept.")
    number: Annotated[int, Field(ge=1)] = Field(description="Versions of the judge of this aspect, counted from 1.")
    state: State = Field(description="Where it stands: draft, proposed, approved, current or retired.")
    parent: Name | None = Field(None, description="Id of the version that it was made of; null for the first.")
    author: str = Field("", description="Who made it; empty for a calibration.")
    note: str = Field("", description="What changed, in a sentence.")
    approvals: list[VersionApproval] = Field(default=[], description="Decisions on it, oldest first.")


class ResidualsEntry(Part):
    """Human label minus calibrated score, item by item: what an interval around a single score is made of."""

    on: Literal["calibration", "cross-fitted", "held-out"] = Field(
        description="The items: those that fitted the map, the same with each source left out in turn, or held-out."
    )
    values: Coordinates = Field(description="One number an item, ascending.")


class IsotonicEntry(Part):
    """Strictly rising map from the judge's score to the human scale, by its corners: x to y, both ascending."""

    x: Annotated[list[Coordinate], Field(min_length=2, max_length=100_000)] = Field(
        description="The judge's scores, ascending."
    )
    y: Annotated[list[Coordinate], Field(min_length=2, max_length=100_000)] = Field(
        description="Where they lie on the human scale, ascending."
    )
    low: Coordinate = Field(description="Low end, never reached.")
    high: Coordinate = Field(description="High end, never reached.")

    @model_validator(mode="after")
    def _rises(self) -> IsotonicEntry:
        try:
            score_map = self.as_map()
            ends = [score_map.x[0] - 1.0, score_map.x[0], score_map.x[-1], score_map.x[-1] + 1.0]
            with np.errstate(all="raise", under="ignore"):
                score_map.apply([*ends, *score_map.x])
        except JudgeError as error:
            raise InconsistentError(str(error)) from error
        except FloatingPointError as error:
            raise InconsistentError("neighbouring points lie too close together. Calibrate again.") from error
        return self

    def as_map(self) -> IsotonicMap:
        """The map.  JudgeError for one that does not rise."""
        return IsotonicMap(tuple(self.x), tuple(self.y), self.low, self.high)


class SplitEntry(Part):
    """How the golden set was divided."""

    kind: Literal["sources", "sources+systems"] = Field(description="No source (and no system) is in both parts.")
    seed: int = Field(description="Seed of the random choice.")
    n_calibration: Count = Field(description="Items that chose the criteria.")
    n_held_out: Count = Field(description="Items that the alignment is reported on.")


Counts = dict[str, Count | None]


class WorkEntry(Part):
    """What was asked for and what was done; a budget may have cut it."""

    drafts: Counts = Field(description="Drafts asked for, made (usable and no repetition), ranked.")
    rounds: Counts = Field(description="Rounds of refining asked for and done.")
    refined: Counts = Field(description="Refinements asked for, made, accepted into the pool.")
    held_out: Counts = Field(description="Held-out items asked for and scored.")
    calls: Counts = Field(description="Calls: budget (null for none), the most that were planned, used.")
    words: str = Field("", description="The same on one line.")
    left_out: list[str] = Field(description="What was not done and why, in sentences.")


class JudgeDocument(Document):
    """A judge calibrated with Concord: all that scoring needs and all that trust in it needs.

    Written as YAML (JSON is read too). It never holds a key or a password.
    """

    format: Literal["concord-judge"] = Field(description="Says that this is a judge file.")
    task: TaskEntry
    judge: JudgeDescription
    prompts: dict[str, Prompt] = Field(
        description="Purpose (score, draft, refine, persona) to the name and version of the prompt text that Concord "
        "ships. Empty for a judge that is asked nothing in words (the offline one)."
    )
    prompt_texts: dict[str, Sha256] | None = Field(
        None,
        description="Purpose to the sha256 of the prompt's text: a changed text under the same name shows.",
    )
    parser: Name | None = Field(
        description="Name and version of what reads a score out of a reply. null for a judge whose scores are "
        "computed, not read."
    )
    join: Literal["mean"] = Field(description="How the scores of several criteria become one: their mean.")
    criteria: list[CriteriaText] = Field(
        min_length=1,
        max_length=100,
        description="The criteria of the judge; several are an ensemble, best first.",
    )
    approved: bool = Field(description="Whether every one of the criteria was approved by a person.")
    approvals: list[ApprovalEntry] = Field(description="Where each of the criteria stands with the people.")
    judge_version: VersionEntry | None = None
    isotonic: IsotonicEntry | None = Field(
        description="Strictly rising map from the judge's score to the human scale. null: scores are used as they come."
    )
    residuals: ResidualsEntry | None = None
    intervals: IntervalsEntry | None = None
    alignment: AlignmentsEntry
    ceiling: AlignmentEntry | None = Field(
        description="How well one person agrees with the mean of the others (leave one rater out), at the statistic "
        "and level of the held-out alignment: about the best that can be hoped for. null when unknown, e.g. without "
        "single ratings."
    )
    golden: GoldenEntry
    split: SplitEntry
    held_out_opened: Count | None = Field(
        description="How often anybody's run looked at the held-out items of this aspect up to the export: the more "
        "often, the less they are unseen. null when nobody counted (the command line)."
    )
    people: dict[str, Scalar] = Field(
        default={}, description="Counts of what people did: edits, votes, comments and the like."
    )
    settings: dict[str, Scalar] = Field(
        description="Settings of the calibration, by name: with the golden set and the same judge they repeat it."
    )
    calls: Count | None = Field(None, description="Calls that the calibration made.")
    work: WorkEntry
    warnings: list[str] = Field(
        description="What whoever uses the judge should know, in sentences: few or skewed labels, criteria without "
        "approval, a run that stopped early."
    )
    texts: TextsEntry
