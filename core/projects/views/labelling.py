"""Labelling passes as the screens see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from core.labelling.harvest import GrowthPoint, Parting
from core.labelling.plan import LabelAspect, LabelPlan, Order
from core.projects.views.reviews import Triage
from core.records import Interval


@dataclass(frozen=True, slots=True)
class PassRequest:
    """A labelling pass to begin.  `limit` None rates every item; `order` says what comes first.

    `take_over` names (pass id, rater) whose earlier labels of these items count in it as that rater's.
    """

    project_id: str
    golden_id: str
    name: str
    aspects: tuple[LabelAspect, ...]
    n_raters: int = 3
    shared: int = 20
    overlap: int = 1
    order: Order = "random"
    limit: int | None = None
    seed: int = 0
    blind: bool = True
    instructions: str = ""
    take_over: tuple[tuple[str, str], ...] = ()

    @property
    def aspect(self) -> str:
        """The first aspect, for lists."""
        return self.aspects[0].aspect if self.aspects else ""


@dataclass(frozen=True, slots=True)
class EarlierLabels:
    """What a rater said in an earlier pass: on how many items."""

    pass_id: str
    rater: str
    n_items: int


@dataclass(frozen=True)
class PassView:
    """A labelling pass; `raters` in the order of joining, `stopped` those of them who rate no more."""

    pass_id: str
    project_id: str
    golden_id: str
    name: str
    plan: LabelPlan
    author: str
    created_at: datetime
    raters: tuple[str, ...]
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StillRating:
    """A pass in which somebody has items left to rate."""

    pass_id: str
    name: str
    n_open: int


@dataclass(frozen=True, slots=True)
class OthersSaid:
    """What others said of an item in a pass that is not blind: (who, aspect, label or None for "cannot tell").

    `judges` holds a judge's score on its own scale.
    """

    raters: tuple[tuple[str, str, float | None], ...]
    judges: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class SavedLabel:
    """What this rater said last of an item: aspect → label (None = cannot tell), and the comment.

    `taken` maps those of the aspects whose label was taken over → the id of the pass it was given in.
    """

    values: Mapping[str, float | None]
    comment: str
    taken: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeskView:
    """One rater's work in a pass: `assigned` item ids in order, what was `saved`, and the first unfinished.

    `begun` holds what was said of items on which an aspect is open still.  `seconds_left` is None until enough was
    saved to tell; `finished` holds when each saved item was last rated (seconds since 1970).  `version` moves with
    every save.
    """

    pass_id: str
    rater: str
    assigned: tuple[str, ...]
    saved: Mapping[str, SavedLabel]
    first_open: str | None
    seconds_left: float | None
    begun: Mapping[str, SavedLabel] = field(default_factory=dict)
    finished: Mapping[str, float] = field(default_factory=dict)
    version: int = 0

    @property
    def n_done(self) -> int:
        return len(self.saved)

    def said(self, item_id: str) -> SavedLabel:
        """What was said of an item so far, finished or not."""
        return self.saved.get(item_id) or self.begun.get(item_id) or SavedLabel({}, "")


@dataclass(frozen=True)
class AspectAgreement:
    """How raters agree on an aspect so far; `alpha` None is undefined, `n_double` items have two labels or more.

    `interval` is None where alpha is undefined or the items come from too few sources.
    """

    aspect: str
    alpha: float | None
    alpha_metric: str
    n_double: int
    n_labels: int
    growth: tuple[GrowthPoint, ...]
    interval: Interval | None = None


@dataclass(frozen=True)
class HarvestView:
    """A pass from above: progress by rater (name → items done), agreement by aspect, and what is to be decided.

    `taken` maps (rater, id of an earlier pass) → items whose labels were taken over from there.

    `assigned` maps rater → items they have to rate.  `queue` holds first where raters part, then what triage called
    mislabelled; `flagged` maps (aspect, item id) → that triage.  `decided` maps the same → the adjudicated value.
    """

    done: Mapping[str, int]
    n_items: int
    n_touched: int
    agreement: tuple[AspectAgreement, ...]
    queue: tuple[Parting, ...]
    decided: Mapping[tuple[str, str], float]
    flagged: Mapping[tuple[str, str], Triage] = field(default_factory=dict)
    assigned: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplacedLabel:
    """A golden label that would be another once the labels of a pass are frozen."""

    item_id: str
    aspect: str
    before: float
    after: float
