"""What a look at the traffic came to: the record, and in words who has moved, the systems or the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.data.exports import PLAIN
from core.monitoring.anchors import AnchorLook
from core.monitoring.periods import By, Movement, Period, Watched
from core.records import Scale
from core.stats.claims import signed_range
from core.stats.mean_records import MeanEstimate
from core.wording import counted, percent

PLAIN_WORDS = "tables"
_MOST_FILES = 4
Who = Literal["nobody", "systems", "judge", "cannot be told apart", "too few texts"]


@dataclass(frozen=True)
class Monitored:
    """The periods, what the anchors say (None without anchors), and what was read.

    `tools` maps each file → what it was taken for; `left_out` what was not read → how many; `n_new` texts were scored
    now, `n_known` had been before; `notes` are for whoever reads the figures.
    """

    aspect: str
    judge: str
    by: By
    scale: Scale
    watched: Watched
    look: AnchorLook | None
    n_new: int
    n_known: int
    n_labelled: int
    tools: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def who(self) -> Who:
        """Who has moved beyond chance."""
        judge = self.look is not None and self.look.moved
        traffic = bool(self.watched.moved) or self.watched.since.moved
        if judge:
            return "judge"
        if traffic:
            moves = [*(period.change for period in self.watched.moved), self.watched.since]
            least = min(abs(move.value) for move in moves if move and move.moved and move.value is not None)
            reach = None if self.look is None else self.look.most
            return "systems" if reach is not None and reach < least else "cannot be told apart"
        known = [period.change for period in self.watched.periods if period.change and period.change.reach is not None]
        return "nobody" if known or self.watched.since.reach is not None else "too few texts"

    @property
    def alarm(self) -> bool:
        """Whether anything has moved."""
        return self.who in ("systems", "judge", "cannot be told apart")

    @property
    def finding(self) -> str:
        """The result in a sentence or two."""
        what = f"Judged {self.aspect} by {self.by}"
        if self.who == "too few texts":
            return f"{what}: whether anything has moved cannot be told yet. {_why_not(self.watched)}"
        if self.who == "nobody":
            return f"{what}: nothing has moved beyond chance since {self._baseline}. {_seen(self.watched)}"
        if self.who == "judge":
            assert self.look is not None
            after = (
                " What has moved on the traffic cannot be put down to the systems."
                if self.watched.moved or self.watched.since.moved
                else ""
            )
            return f"The judge itself has moved: {anchor_words(self.look)}{after}"
        moved, people = f"{_moves(self.watched)} since {self._baseline}", _by_people(self.watched)
        if self.who == "systems":
            still = "has not" if self.look is not None and self.look.most == 0.0 else "has not moved as much"
            return f"What is judged has moved, and by its anchors the judge {still}: {moved}.{people}"
        apart = "Whether the systems or the judge moved cannot be told without anchors that were scored before and now."
        if self.look is not None and self.look.n > 1:
            apart = "Whether the systems or the judge moved cannot be told: the anchors do not rule the judge out."
        return f"{what}: {moved}.{people} {apart}"

    @property
    def _baseline(self) -> str:
        names = [period.name for period in self.watched.periods if period.in_baseline]
        return f"the baseline ({names[0]}{f' to {names[-1]}' if len(names) > 1 else ''})"

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `monitor`."""
        return {
            "aspect": self.aspect,
            "judge": self.judge,
            "by": self.by,
            "scale": [self.scale.low, self.scale.high],
            "finding": self.finding,
            "moved": self.who,
            "alarm": self.alarm,
            "alpha": self.watched.alpha,
            "since_baseline": self.watched.since.as_json(),
            "periods": [period.as_json() for period in self.watched.periods],
            "anchors": None if self.look is None else self.look.as_json(),
            "n_new": self.n_new,
            "n_known": self.n_known,
            "n_labelled": self.n_labelled,
            "files": dict(self.tools),
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }


def movement_words(change: Movement | None) -> str:
    """E.g. "down by 0.31, ±0.12"; "" for the baseline."""
    if change is None:
        return ""
    if change.value is None:
        return f"— ({change.reason})"
    way = f"{'down' if change.value < 0 else 'up'} by {abs(change.value):.2f}"
    return f"{way}, ±{change.reach:.2f}" if change.reach is not None else f"{way} ({change.reason})"


def unsure_words(period: Period) -> str:
    """How many verdicts are marked as unsure, and which share of those there are; "—" where nobody asked."""
    if period.n_unsure is None:
        return "—"
    n_read = period.n - period.n_unread
    return f"{period.n_unsure:,} ({percent(period.n_unsure / n_read)})" if n_read else "0"


def read_words(tools: Mapping[str, str]) -> list[str]:
    """What the files were taken for, a line a kind of file, the first few by name."""
    named: dict[str, list[str]] = {}
    for file, tool in tools.items():
        named.setdefault(PLAIN_WORDS if tool == PLAIN else tool, []).append(file)
    return [
        f"{tool}: {', '.join(files[:_MOST_FILES])}"
        + (f" and {counted(more, 'other')}" if (more := len(files) - _MOST_FILES) > 0 else "")
        for tool, files in named.items()
    ]


def mean_words(estimate: MeanEstimate | None) -> str:
    """A corrected mean with its interval, or why there is none."""
    if estimate is None:
        return "—"
    if estimate.value is None:
        return f"— ({estimate.reason})"
    ends = "" if estimate.interval is None else f" [{estimate.interval.low:.2f}, {estimate.interval.high:.2f}]"
    return f"{estimate.value:.2f}{ends}"


def anchor_words(look: AnchorLook) -> str:
    """What the anchors say, in a sentence."""
    lost = f" {counted(look.n_lost, 'anchor')} could not be read now." if look.n_lost else ""
    if look.change is None:
        return f"{counted(look.n_items, 'anchor')}: {look.reason}.{lost}"
    if look.interval is None:
        return f"on {counted(look.n_items, 'anchor')}, look {look.n}: {look.reason}.{lost}"
    way = "down" if look.change < 0 else "up"
    return (
        f"on {counted(look.n_items, 'anchor')} whose texts stand still its scores are {way} by "
        f"{abs(look.change):.2f} {signed_range(look.interval)} since the first look.{lost}"
    )


def _moves(watched: Watched) -> str:
    moved = watched.moved
    if not moved:
        return f"all that came after it is {movement_words(watched.since)}"
    last = moved[-1]
    others = f" ({counted(len(moved) - 1, 'other period')} too)" if len(moved) > 1 else ""
    return f"{last.name} is {movement_words(last.change)}{others}"


def _by_people(watched: Watched) -> str:
    """Where the period that moved last stands once people's labels have corrected it, and where the baseline does."""
    last = watched.moved[-1].corrected if watched.moved else None
    if last is None or last.interval is None:
        return ""
    before = [period.corrected for period in watched.periods if period.in_baseline]
    beside = f", the baseline {mean_words(before[0])}" if len(before) == 1 and before[0] and before[0].interval else ""
    return f" Corrected by people's labels it stands at {mean_words(last)}{beside}."


def _seen(watched: Watched) -> str:
    """What would have been seen."""
    last = [(period.name, period.change) for period in reversed(watched.periods)]
    for name, change in (("all that came after it", watched.since), *last):
        if change is not None and change.detectable is not None:
            return f"A change of {change.detectable:.2f} in {name} would have been seen in 8 of 10 cases."
    return ""


def _why_not(watched: Watched) -> str:
    if watched.since.reason == "no verdicts":
        return "All texts lie in the baseline: what comes later is held against it."
    return f"After the baseline: {watched.since.reason or 'no period has enough texts'}."
