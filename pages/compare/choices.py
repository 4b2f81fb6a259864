"""What Compare compares: golden set, aspect, measure, items and judges as chosen; the finding in words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from core import projects
from core.comparison import (
    Finding,
    Leaderboard,
    Row,
    compare_table,
    costly,
    finding,
    unique_names,
    usual_level,
    version_finding,
    with_planned,
    without_p,
)
from core.comparison.supervised import PlainRegression, plain_regression
from core.project_records import GoldenSummary, JudgeEntry
from core.projects.judges_shown import JudgesShown
from core.records import STATISTICS, GoldenSet, Level, Measure, Statistic
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES, measure_name
from pages.ui import state
from pages.ui.page import Opened, link_to

SEED = 0
MOST_NAMED = 4


@dataclass(frozen=True)
class Choice:
    """What a person asked to see; `judges` are those compared."""

    judges: tuple[JudgeEntry, ...]
    statistic: Statistic
    level: Level


@dataclass(frozen=True)
class Compared:
    """A leaderboard with what it was made of; `key` names its content, for what is kept per content."""

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    judges: tuple[JudgeEntry, ...]
    leaderboard: Leaderboard
    key: Hashable
    shown: JudgesShown

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
        """The row that the others stand beside: of the version in use, else the highest."""
        rows = enumerate(self.leaderboard.rows)
        return next((k for k, row in rows if self.judge_of(row).judge_id == self.shown.own), 0)


@st.cache_resource(max_entries=8, show_spinner="Reading the golden set …")
def kept_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Golden sets never change under their id."""
    return projects.load_golden_set(_page.store, golden_id)


def choose_measure(page: Opened, view: GoldenSummary, aspect: str, shown: JudgesShown) -> Chosen:
    """Statistic and level: those in the URL, else what the judge in use was measured by, else the usual."""
    levels, own = _levels(view), shown.measure
    level = own.level if own is not None else usual_level(kept_golden(view.golden_id, page), aspect)
    return Chosen(
        hold("statistic", STATISTICS, own.statistic if own is not None else "spearman"),
        hold("level", levels, level if level in levels else "dataset"),
        levels,
    )


def draw_measure(chosen: Chosen) -> None:
    """What the table is measured by, to be changed."""
    with st.popover(measure_name(chosen.statistic.value, chosen.level.value), icon=":material/tune:"):
        _draw_segments("Statistic", chosen.statistic, STATISTICS, STATISTIC_NAMES)
        names = {level: LEVEL_NAMES[level].removesuffix(" level") for level in chosen.levels}
        said = "Dataset: one coefficient over all items. Sample: one a source, averaged. System: over system means."
        _draw_segments("Level", chosen.level, chosen.levels, names, said=said)


def _draw_segments(
    label: str, held: Held, options: Sequence[str], names: Mapping[str, str], *, said: str | None = None
) -> None:
    st.segmented_control(
        label,
        options,
        required=True,
        format_func=lambda option: names[option],
        key=held.key,
        on_change=keep,
        args=(held,),
        help=said,
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A choice that stands in the URL under `name` where it is not `usual`; `key` is its widget's."""

    name: str
    key: str
    value: Any
    usual: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the table is measured by, as it stands."""

    statistic: Held
    level: Held
    levels: Sequence[Level]


def hold(name: str, options: Sequence[str], usual: str) -> Held:
    """The choice in the URL, else that of this session, else the usual one; put where its widget finds it."""
    key, kept = state.widget(f"compare_{name}"), _kept(name)
    value = state.url_id(name) or st.session_state.get(kept)
    if value not in options:
        value = usual
    st.session_state[key] = value
    state.put_in_url(**{name: None if value == usual else value})
    return Held(name, key, value, usual)


def keep(held: Held) -> None:
    """Takes what the widget of `held` says now into the URL and the session."""
    chosen = st.session_state[held.key]
    st.session_state[_kept(held.name)] = chosen
    state.put_in_url(**{held.name: None if chosen == held.usual else chosen})


def _kept(name: str) -> str:
    """Where this session keeps a choice for the project at hand."""
    return state.widget(f"compare_kept_{state.project()}_{name}")


def choose_columns(offered: Sequence[str]) -> tuple[str, ...]:
    """Which of the columns `offered` a person wants beside the usual ones; in the URL and kept for the session."""
    key, known = state.widget("compare_columns"), list(offered)
    value = state.url_id("columns") or st.session_state.get(_kept("columns")) or ""
    st.session_state[key] = [name for name in value.split(",") if name in known]
    state.put_in_url(columns=value or None)
    with st.popover("Columns", icon=":material/view_column:"):
        chosen = st.pills(
            "Columns beside the usual ones",
            known,
            selection_mode="multi",
            key=key,
            on_change=_keep_columns,
            args=(key,),
        )
    return tuple(chosen)


def _keep_columns(key: str) -> None:
    value = ",".join(st.session_state[key])
    st.session_state[_kept("columns")] = value
    state.put_in_url(columns=value or None)


def choose_versions(shown: JudgesShown) -> tuple[JudgeEntry, ...]:
    """The judges to choose from: with the versions that stand aside where a person brings them in."""
    if not shown.aside:
        return shown.entries
    earlier = shown.version is not None and all(
        shown.version.number > other for other in (_number(shown, entry) for entry in shown.aside)
    )
    key = state.widget("compare_versions")
    st.session_state[key] = (state.url_id("versions") or st.session_state.get(_kept("versions"))) == "all"
    state.put_in_url(versions="all" if st.session_state[key] else None)
    label = f"{'Earlier' if earlier else 'Other'} versions"
    brought = st.toggle(label, key=key, on_change=_keep_versions, args=(key,))
    return (*shown.entries, *shown.aside) if brought else shown.entries


def _number(shown: JudgesShown, entry: JudgeEntry) -> int:
    version = shown.line.of_run(entry.judge.run_id)
    return 0 if version is None else version.number


def _keep_versions(key: str) -> None:
    value = "all" if st.session_state[key] else None
    st.session_state[_kept("versions")] = value
    state.put_in_url(versions=value)


def _levels(view: GoldenSummary) -> list[Level]:
    """The levels that this golden set can have at all."""
    levels: list[Level] = ["dataset"]
    if view.n_sources < view.n_items:
        levels.append("sample")
    if view.n_systems > 1 and view.kind != "pair":
        levels.append("system")
    return levels


def choose_judges(view: GoldenSummary, aspect: str, judges: Sequence[JudgeEntry], own: str) -> tuple[JudgeEntry, ...]:
    """All judges but those a person leaves out; a new one takes part at once, unless it takes many items away.

    `own` is the id of the judge in use, "" for none.
    """
    if len(judges) < 2:
        return tuple(judges)
    key = state.widget(f"compare_out_{view.golden_id[-12:]}_{aspect}")
    names = dict(
        zip((entry.judge_id for entry in judges), unique_names([entry.judge for entry in judges]), strict=True)
    )
    _leave_out_costly(key, judges, own)
    kept = st.session_state.get(key)
    if kept and not set(kept) <= set(names):  # one of them was removed
        st.session_state[key] = [judge_id for judge_id in kept if judge_id in names]
    shown = len(judges) - len(st.session_state.get(key) or ())
    with st.popover(f"{shown} of {len(judges)} judges", icon=":material/filter_list:"):
        out = st.multiselect(
            "Leave out of the comparison",
            list(names),
            format_func=lambda judge_id: names[judge_id],
            key=key,
            max_selections=len(judges) - 1,
            help="A judge that has seen many labels, or scored few items, costs all others those items.",
        )
    return tuple(entry for entry in judges if entry.judge_id not in out)


def _costly(judges: Sequence[JudgeEntry], own: str) -> list[JudgeEntry]:
    """Judges that would cost the one in use many of its items: a pilot, or what was fitted on held-out labels."""
    ids = [entry.judge_id for entry in judges]
    places = costly([entry.judge for entry in judges], ids.index(own) if own in ids else None)
    return [judges[place] for place in places]


def _leave_out_costly(key: str, judges: Sequence[JudgeEntry], own: str) -> None:
    """Leaves each costly judge out once; a person who puts it back in is not overruled."""
    known = st.session_state.setdefault(f"{key}_costly", set())
    fresh = [entry.judge_id for entry in _costly(judges, own) if entry.judge_id not in known]
    if fresh:
        known.update(fresh)
        st.session_state[key] = [*(st.session_state.get(key) or ()), *fresh]


def aside_words(judges: Sequence[JudgeEntry], choice: Choice, own: str) -> str:
    """Which judges stand aside because of the items they would cost, and how to put them in; "" where none does."""
    compared = {entry.judge_id for entry in choice.judges}
    aside = [entry for entry in _costly(judges, own) if entry.judge_id not in compared]
    if not aside:
        return ""
    named = "; ".join(entry.name for entry in aside[:MOST_NAMED])
    more = f" and {len(aside) - MOST_NAMED} more" if len(aside) > MOST_NAMED else ""
    return (
        f"Aside, because it would cost the others over a third of their items: {named}{more}. "
        f"“{len(compared)} of {len(judges)} judges” puts it in."
    )


def compare(page: Opened, view: GoldenSummary, aspect: str, choice: Choice, shown: JudgesShown) -> Compared:
    """The leaderboard of a choice, computed once for its content."""
    golden = kept_golden(view.golden_id, page)
    key = (
        view.golden_id,
        aspect,
        tuple((entry.judge_id, entry.name) for entry in choice.judges),
        choice.statistic,
        choice.level,
        shown.own,
        shown.seen,
        SEED,
    )
    judges, board = _kept_board(key, page, golden, choice, shown)
    return Compared(view, golden, aspect, judges, board, key, shown)


@st.cache_resource(max_entries=64, show_spinner="Comparing the judges …")
def _kept_board(
    key: Hashable, _page: Opened, _golden: GoldenSet, _choice: Choice, _shown: JudgesShown
) -> tuple[tuple[JudgeEntry, ...], Leaderboard]:
    judges = projects.as_compared(_page.store, _page.project.project_id, _choice.judges)
    entries = tuple(replace(entry, judge=judge) for entry, judge in zip(_choice.judges, judges, strict=True))
    board = compare_table(
        _golden,
        _shown.line.aspect,
        judges,
        Measure(_choice.statistic, _choice.level),
        regression=_kept_regression((_golden.digest, _shown.line.aspect), _golden),
        seed=SEED,
    )
    ids = [entry.judge_id for entry in _choice.judges]
    if _shown.own not in ids:
        return entries, board
    own = ids.index(_shown.own)
    if _shown.baseline in ids:
        board = with_planned(board, own, ids.index(_shown.baseline))
    return entries, without_p(board, own, _shown.seen.p_reason)


@st.cache_resource(max_entries=64, show_spinner="Fitting the bar …")
def _kept_regression(key: tuple[str, str], _golden: GoldenSet) -> PlainRegression:
    """The bar of a golden set's aspect: fitted once, whatever is compared."""
    return plain_regression(_golden, key[1], seed=SEED)


def finding_of(compared: Compared) -> Finding:
    """What the table says of the version in use; where there is none, of the highest judge."""
    shown, ids = compared.shown, [entry.judge_id for entry in compared.judges]
    if shown.version is None or not compared.has_own:
        return finding(compared.leaderboard, compared.measure)
    return version_finding(
        compared.leaderboard,
        compared.measure,
        f"Version {shown.version.number} of the judge",
        ids.index(shown.own),
        baseline=ids.index(shown.baseline) if shown.baseline in ids else None,
        looks=shown.seen.looks,
    )


def draw_next(compared: Compared) -> None:
    """The one next thing: sign the version off, measure it here, or read the report."""
    shown, golden_id = compared.shown, compared.view.golden_id
    default, where = shown.line.default, {"golden": golden_id, "aspect": compared.aspect}
    if default is None:
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", golden=golden_id)
    elif default.on(golden_id) is None:
        words = f"Measure version {default.number} here"
        link_to("overview", words, icon=":material/play_arrow:", version=str(default.number), **where)
    elif not default.in_force:
        words = f"Sign off version {default.number}"
        link_to("overview", words, icon=":material/verified:", version=str(default.number), **where)
    else:
        link_to("report", "Read the report", icon=":material/summarize:", **where)


def items_words(leaderboard: Leaderboard) -> str:
    """How the items came about, and which judge costs most of what is missing."""
    pool = leaderboard.pool
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
