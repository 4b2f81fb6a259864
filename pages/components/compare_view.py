"""What Compare compares: golden set, aspect, measure, items and judges as chosen; the finding in words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import projects
from core.comparison import Finding, ItemsMode, Leaderboard, Row, compare_table, finding, unique_names, usual_level
from core.project_records import GoldenSummary, JudgeEntry
from core.records import STATISTICS, GoldenSet, Level, Measure, Statistic
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES, measure_name
from pages.components import state
from pages.components.page import Opened
from pages.components.screens import plain

SEED = 0
NARROW = 0.25
"""Share of the widest judge's scored items under which a judge stands aside until a person puts it in."""
MOST_NAMED = 4
MODES: dict[ItemsMode, str] = {
    "unseen": "same unseen items for all",
    "own": "each judge's own unseen items",
    "all": "all items, seen ones too",
}
MODE_HELP = (
    "Unseen: only items whose labels none of the judges has seen and that all of them scored; the honest comparison. "
    "Own: each judge on everything it may honestly be measured on; these numbers do not rank the judges. "
    "All: seen labels too, which flatters judges that were calibrated on them."
)


@dataclass(frozen=True)
class Choice:
    """What a person asked to see; `judges` are those compared."""

    judges: tuple[JudgeEntry, ...]
    statistic: Statistic
    level: Level
    items: ItemsMode


@dataclass(frozen=True)
class Compared:
    """A leaderboard with what it was made of; `key` names its content, for what is kept per content."""

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    judges: tuple[JudgeEntry, ...]
    leaderboard: Leaderboard
    key: Hashable

    @property
    def measure(self) -> str:
        return measure_name(self.leaderboard.measure.statistic, self.leaderboard.measure.level)

    def judge_of(self, row: Row) -> JudgeEntry:
        """The judge behind a row."""
        return self.judges[row.place]


@st.cache_resource(max_entries=8, show_spinner="Reading the golden set …")
def kept_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Golden sets never change under their id."""
    return projects.load_golden_set(_page.store, golden_id)


def choose_measure(page: Opened, view: GoldenSummary, aspect: str, judges: Sequence[JudgeEntry]) -> Choice:
    """Statistic, level and items, for `judges`; what differs from the usual stands in the URL."""
    levels = _levels(view)
    usual = usual_level(kept_golden(view.golden_id, page), aspect)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        held = hold("statistic", STATISTICS, "spearman")
        st.segmented_control(
            "Statistic",
            STATISTICS,
            required=True,
            format_func=lambda statistic: STATISTIC_NAMES[statistic],
            key=held.key,
            on_change=keep,
            args=(held,),
        )
        statistic: Statistic = held.value
        held = hold("level", levels, usual if usual in levels else "dataset")
        st.segmented_control(
            "Level",
            levels,
            required=True,
            format_func=lambda level: LEVEL_NAMES[level].removesuffix(" level"),
            key=held.key,
            on_change=keep,
            args=(held,),
            help="Dataset: one coefficient over all items. Sample: one a source, averaged. System: over system means.",
        )
        level: Level = held.value
        held = hold("items", list(MODES), "unseen")
        st.selectbox(
            "Items",
            list(MODES),
            format_func=lambda mode: MODES[mode],
            key=held.key,
            on_change=keep,
            args=(held,),
            help=MODE_HELP,
            width=270,
        )
    return Choice(tuple(judges), statistic, level, held.value)


@dataclass(frozen=True, slots=True)
class Held:
    """A choice that stands in the URL under `name` where it is not `usual`; `key` is its widget's."""

    name: str
    key: str
    value: Any
    usual: str


def hold(name: str, options: Sequence[str], usual: str) -> Held:
    """The choice in the URL, else that of this session, else the usual one; put where its widget finds it."""
    key, kept = state.widget(f"compare_{name}"), state.widget(f"compare_kept_{name}")
    value = state.url_id(name) or st.session_state.get(kept)
    if value not in options:
        value = usual
    st.session_state[key] = value
    state.put_in_url(**{name: None if value == usual else value})
    return Held(name, key, value, usual)


def keep(held: Held) -> None:
    """Takes what the widget of `held` says now into the URL and the session."""
    chosen = st.session_state[held.key]
    st.session_state[state.widget(f"compare_kept_{held.name}")] = chosen
    state.put_in_url(**{held.name: None if chosen == held.usual else chosen})


def _levels(view: GoldenSummary) -> list[Level]:
    """The levels that this golden set can have at all."""
    levels: list[Level] = ["dataset"]
    if view.n_sources < view.n_items:
        levels.append("sample")
    if view.n_systems > 1:
        levels.append("system")
    return levels


def choose_judges(view: GoldenSummary, aspect: str, judges: Sequence[JudgeEntry]) -> tuple[JudgeEntry, ...]:
    """All judges but those a person leaves out; a new one takes part at once, unless it scored few items."""
    if len(judges) < 2:
        return tuple(judges)
    key = state.widget(f"compare_out_{view.golden_id[-12:]}_{aspect}")
    names = dict(
        zip((entry.judge_id for entry in judges), unique_names([entry.judge for entry in judges]), strict=True)
    )
    _leave_out_narrow(key, judges)
    kept = st.session_state.get(key)
    if kept and not set(kept) <= set(names):  # one of them was removed
        st.session_state[key] = [judge_id for judge_id in kept if judge_id in names]
    shown = len(judges) - len(st.session_state.get(key) or ())
    with st.popover(f"{shown} of {len(judges)} judges", icon=":material/filter_list:", width="stretch"):
        out = st.multiselect(
            "Leave out of the comparison",
            list(names),
            format_func=lambda judge_id: names[judge_id],
            key=key,
            max_selections=len(judges) - 1,
            help="A judge that has seen many labels, or scored few items, costs all others those items.",
        )
    return tuple(entry for entry in judges if entry.judge_id not in out)


def _narrow(judges: Sequence[JudgeEntry]) -> list[JudgeEntry]:
    """Judges with scores for a small share of what the widest one scored: a pilot would cost all others their items."""
    widest = max((entry.judge.n_scored for entry in judges), default=0)
    return [entry for entry in judges if entry.judge.n_scored < NARROW * widest]


def _leave_out_narrow(key: str, judges: Sequence[JudgeEntry]) -> None:
    """Leaves each narrow judge out once; a person who puts it back in is not overruled."""
    known = st.session_state.setdefault(f"{key}_narrow", set())
    fresh = [entry.judge_id for entry in _narrow(judges) if entry.judge_id not in known]
    if fresh:
        known.update(fresh)
        st.session_state[key] = [*(st.session_state.get(key) or ()), *fresh]


def narrow_words(judges: Sequence[JudgeEntry], choice: Choice) -> str:
    """Which judges stand aside because they scored few items, and how to put them in; empty where none does."""
    compared = {entry.judge_id for entry in choice.judges}
    aside = [entry for entry in _narrow(judges) if entry.judge_id not in compared]
    if not aside:
        return ""
    named = "; ".join(f"{entry.name} ({entry.judge.n_scored:,})" for entry in aside[:MOST_NAMED])
    more = f" and {len(aside) - MOST_NAMED} more" if len(aside) > MOST_NAMED else ""
    return (
        f"Standing aside because of few scored items, since only on those could all be compared: {named}{more}. "
        f"“{len(compared)} of {len(judges)} judges” above puts them in."
    )


def compare(page: Opened, view: GoldenSummary, aspect: str, choice: Choice) -> Compared:
    """The leaderboard of a choice, computed once for its content."""
    golden = kept_golden(view.golden_id, page)
    key = (
        view.golden_id,
        aspect,
        tuple((entry.judge_id, entry.name) for entry in choice.judges),
        choice.statistic,
        choice.level,
        choice.items,
        SEED,
    )
    return Compared(view, golden, aspect, choice.judges, _kept_board(key, golden, aspect, choice), key)


@st.cache_resource(max_entries=64, show_spinner="Comparing the judges …")
def _kept_board(key: Hashable, _golden: GoldenSet, _aspect: str, _choice: Choice) -> Leaderboard:
    return compare_table(
        _golden,
        _aspect,
        [entry.judge for entry in _choice.judges],
        Measure(_choice.statistic, _choice.level),
        items=_choice.items,
        seed=SEED,
    )


def draw_finding(compared: Compared) -> None:
    """What the table says, and what makes it weaker than it looks."""
    leaderboard = compared.leaderboard
    said: Finding = finding(leaderboard, compared.measure)
    with st.container(border=True):
        st.subheader(plain(said.headline), anchor=False)
        for sentence in said.details:
            st.markdown(plain(sentence))
        for sentence in said.cautions:
            st.markdown(f":material/warning: {plain(sentence)}")
        if words := items_words(leaderboard):
            st.caption(plain(words))


def items_words(leaderboard: Leaderboard) -> str:
    """How the items came about, and which judge costs most of what is missing."""
    pool = leaderboard.pool
    if pool.mode == "own":
        return ""
    parts = [f"{pool.n_common:,} of {pool.n_labelled:,} labelled items"]
    if pool.n_seen:
        parts.append(f"{pool.n_seen:,} left out because a judge has seen their labels")
    if pool.n_unscored:
        parts.append(f"{pool.n_unscored:,} because a judge has no score for them")
    costly = [row for row in sorted(leaderboard.rows, key=lambda row: -row.cost.alone) if row.cost.alone][:2]
    words = "; ".join(parts) + "."
    if costly and pool.n_common < pool.n_labelled / 2:
        words += " " + " ".join(f"Leaving out {row.name} brings back {row.cost.alone:,}." for row in costly)
    return words
