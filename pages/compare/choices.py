"""What Compare compares: measure and judges as chosen, the leaderboard of them, and its finding."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from core import projects
from core.comparison import (
    Leaderboard,
    Row,
    compare_table,
    costly,
    unique_names,
    usual_level,
)
from core.comparison.supervised import PlainRegression, plain_regression
from core.findings import Finding
from core.findings.agreement import board_finding
from core.project_records import GoldenSummary, JudgeEntry
from core.projects.project_judges import JudgesShown
from core.records import STATISTICS, GoldenSet, Level, Measure
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES, measure_name
from pages.ui import state
from pages.ui.page import Opened

SEED = 0


@dataclass(frozen=True)
class Compared:
    """A leaderboard with what it was made of; `key` names its content, for what is cached per content.

    `hidden` are the names of judges that nobody left out, because too few items are common to them and the others.
    """

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    judges: tuple[JudgeEntry, ...]
    leaderboard: Leaderboard
    key: Hashable
    shown: JudgesShown
    hidden: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        return measure_name(self.leaderboard.measure.statistic, self.leaderboard.measure.level)

    def judge_of(self, row: Row) -> JudgeEntry:
        """The judge behind a row."""
        return self.judges[row.place]

    @property
    def has_own(self) -> bool:
        """Whether the version in use is among the judges compared."""
        return any(entry.judge_id == self.shown.own for entry in self.judges)

    @property
    def subject(self) -> int:
        """The row that the others are compared with: of the version in use, else the highest."""
        rows = enumerate(self.leaderboard.rows)
        return next((k for k, row in rows if self.judge_of(row).judge_id == self.shown.own), 0)

    @property
    def finding(self) -> Finding:
        """What the table says of the version in use; where there is none, of the highest judge."""
        shown, ids = self.shown, [entry.judge_id for entry in self.judges]
        if shown.version is None or not self.has_own:
            return board_finding(self.leaderboard, self.measure)
        return board_finding(
            self.leaderboard,
            self.measure,
            ids.index(shown.own),
            f"Version {shown.version.number} of the judge",
            baseline=ids.index(shown.baseline) if shown.baseline in ids else None,
            looks=shown.seen.looks,
        )


@st.cache_resource(max_entries=8, show_spinner="Reading the golden set …")
def kept_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Golden sets never change under their id."""
    return _page.store.goldens.load(golden_id)


@dataclass(frozen=True, slots=True)
class Held:
    """A choice that stands in the URL under `name` where it is not `usual`; `key` is its widget's."""

    name: str
    key: str
    value: Any
    usual: str

    def draw(self, label: str, words: dict[str, str], **look: Any) -> None:
        """The choice as a row of buttons: option → its words."""
        st.segmented_control(
            label,
            list(words),
            required=True,
            format_func=lambda option: words[option],
            key=self.key,
            on_change=self._keep,
            **look,
        )

    def _keep(self) -> None:
        self.set(st.session_state[self.key])

    def set(self, chosen: str) -> None:
        """Keep a choice in the URL and in the session."""
        st.session_state[_kept(self.name)] = chosen
        state.put_in_url(**{self.name: None if chosen == self.usual else chosen})


def hold(name: str, options: Sequence[str], usual: str) -> Held:
    """The choice in the URL, else that of this session, else the usual one; put where its widget finds it."""
    key = state.widget(f"compare_{name}")
    value = state.url_id(name) or st.session_state.get(_kept(name))
    if value not in options:
        value = usual
    st.session_state[key] = value
    state.put_in_url(**{name: None if value == usual else value})
    return Held(name, key, value, usual)


def _kept(name: str) -> str:
    """Where this session keeps a choice for the project at hand."""
    return state.widget(f"compare_kept_{state.project()}_{name}")


def choose(page: Opened, view: GoldenSummary, aspect: str, shown: JudgesShown) -> Compared:
    """Draws the choice of measure and judges; the leaderboard of what was chosen, computed once for its content."""
    golden, own = kept_golden(view.golden_id, page), shown.measure
    levels: list[Level] = ["dataset"]
    if view.n_sources < view.n_items:
        levels.append("sample")
    if view.n_systems > 1 and view.kind != "pair":
        levels.append("system")
    usual = own.level if own is not None else usual_level(golden, aspect)
    statistic = hold("statistic", STATISTICS, own.statistic if own is not None else "spearman")
    level = hold("level", levels, usual if usual in levels else "dataset")
    with st.popover(measure_name(statistic.value, level.value), icon=":material/tune:"):
        statistic.draw("Statistic", dict(STATISTIC_NAMES))
        level.draw(
            "Level",
            {name: LEVEL_NAMES[name].removesuffix(" level") for name in levels},
            help="Dataset: one figure over all items. Sample: one per source, averaged. System: over system means.",
        )
    judges, hidden = _choose_judges(view, aspect, shown)
    key = (
        view.golden_id,
        aspect,
        tuple((entry.judge_id, entry.name) for entry in judges),
        statistic.value,
        level.value,
        shown.own,
        shown.seen,
        SEED,
    )
    measured, board = _kept_board(key, page, golden, judges, Measure(statistic.value, level.value), shown)
    return Compared(view, golden, aspect, measured, board, key, shown, hidden)


def _choose_judges(
    view: GoldenSummary, aspect: str, shown: JudgesShown
) -> tuple[tuple[JudgeEntry, ...], tuple[str, ...]]:
    """All judges but those that a person leaves out; and the names of those left out because of the items they cost.

    Other versions of the judge, and a judge that would cost the one in use many of its items (a pilot, or what was
    fitted on held-out labels), are left out once; a person who puts one back in is not overruled.
    """
    judges = (*shown.entries, *shown.aside)
    if len(judges) < 2:
        return judges, ()
    key = state.widget(f"compare_out_{view.golden_id[-12:]}_{aspect}")
    ids = [entry.judge_id for entry in judges]
    names = dict(zip(ids, unique_names([entry.judge for entry in judges]), strict=True))
    own = ids.index(shown.own) if shown.own in ids else None
    few = [ids[place] for place in costly([entry.judge for entry in shown.entries], own)]
    known = st.session_state.setdefault(f"{key}_known", set())
    fresh = {*few, *(entry.judge_id for entry in shown.aside)} - known
    known |= fresh
    out = [judge_id for judge_id in ids if judge_id in fresh or judge_id in st.session_state.get(key, ())]
    st.session_state[key] = out  # without those that were removed
    with st.popover(f"{len(judges) - len(out)} of {len(judges)} judges", icon=":material/filter_list:"):
        out = st.multiselect(
            "Leave out of the comparison",
            ids,
            format_func=lambda judge_id: names[judge_id],
            key=key,
            max_selections=len(judges) - 1,
            help="A judge that has seen many labels, or scored few items, costs all others those items.",
        )
    hidden = tuple(names[judge_id] for judge_id in few if judge_id in out)
    return tuple(entry for entry in judges if entry.judge_id not in out), hidden


@st.cache_resource(max_entries=64, show_spinner="Comparing the judges …")
def _kept_board(
    key: Hashable,
    _page: Opened,
    _golden: GoldenSet,
    _judges: tuple[JudgeEntry, ...],
    _measure: Measure,
    _shown: JudgesShown,
) -> tuple[tuple[JudgeEntry, ...], Leaderboard]:
    judges = projects.as_compared(_page.store, _page.project.project_id, _judges)
    entries = tuple(replace(entry, judge=judge) for entry, judge in zip(_judges, judges, strict=True))
    aspect = _shown.line.aspect
    regression = _kept_regression((_golden.digest, aspect), _golden)
    board = compare_table(_golden, aspect, judges, _measure, regression=regression, seed=SEED)
    ids = [entry.judge_id for entry in _judges]
    if _shown.own not in ids:
        return entries, board
    own = ids.index(_shown.own)
    if _shown.baseline in ids:
        board = board.with_planned(own, ids.index(_shown.baseline))
    return entries, board.without_p(own, _shown.seen.p_reason)


@st.cache_resource(max_entries=64, show_spinner="Fitting the bar …")
def _kept_regression(key: tuple[str, str], _golden: GoldenSet) -> PlainRegression:
    """The bar of a golden set's aspect: fitted once, whatever is compared."""
    return plain_regression(_golden, key[1], seed=SEED)


def choose_row(compared: Compared) -> int:
    """A row of the leaderboard: of the judge in use (without one, the best) unless somebody chooses another."""
    rows = compared.leaderboard.rows
    names = {compared.judge_of(row).judge_id: row.name for row in rows}
    ids = list(names)
    chosen = st.selectbox(
        "Judge",
        ids,
        index=compared.subject,
        format_func=lambda judge_id: names.get(judge_id, judge_id),
        key=state.widget("compare_judge"),
    )
    return ids.index(chosen) if chosen in ids else 0
