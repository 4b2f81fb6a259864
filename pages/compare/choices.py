"""Choose what to compare, and compute the leaderboard."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import streamlit as st

from core import projects
from core.comparison import Leaderboard, Row, compare_table, judges_to_leave_out, unique_names, usual_level
from core.comparison.supervised import plain_regression
from core.findings import Finding
from core.findings.agreement import board_finding
from core.project_records import GoldenSummary, JudgeEntry
from core.projects.judge_line import JudgeVersion
from core.projects.project_judges import JudgesShown
from core.records import STATISTICS, Alignment, GoldenSet, Level, Measure, Statistic
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES, measure_name
from pages.ui import chosen, state, tables
from pages.ui.cached import cached
from pages.ui.page import Opened
from pages.ui.screens import plain

SEED = 0


@dataclass(frozen=True)
class Compared:
    """A leaderboard with its inputs. `key` identifies its content in the cache.

    `hidden` are the names of judges that were hidden because they share too few items with the others.
    """

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    judges: tuple[JudgeEntry, ...]
    leaderboard: Leaderboard
    key: tuple[Hashable, ...]
    shown: JudgesShown
    hidden: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        return measure_name(self.leaderboard.measure.statistic, self.leaderboard.measure.level)

    def judge_of(self, row: Row) -> JudgeEntry:
        return self.judges[row.place]

    @property
    def version(self) -> JudgeVersion | None:
        """The version of the calibrated judge in the comparison; None if there is none."""
        compared = any(entry.judge_id == self.shown.own for entry in self.judges)
        return self.shown.version if compared else None

    @property
    def subject(self) -> int:
        """Index of the row to compare the others with: the row of `version`, else of the best judge."""
        rows = enumerate(self.leaderboard.rows)
        return next((k for k, row in rows if self.judge_of(row).judge_id == self.shown.own), 0)

    @property
    def finding(self) -> Finding:
        """The finding on `version`, else on the best judge."""
        shown, ids = self.shown, [entry.judge_id for entry in self.judges]
        if self.version is None:
            return board_finding(self.leaderboard, self.measure)
        return board_finding(
            self.leaderboard,
            self.measure,
            ids.index(shown.own),
            baseline=ids.index(shown.baseline) if shown.baseline in ids else None,
        )


@st.cache_resource(max_entries=8, show_spinner="Reading the golden set …")
def cached_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Return a golden set. It is cached, because a golden set never changes under its id."""
    return _page.store.goldens.load(golden_id)


def choose(page: Opened, view: GoldenSummary, aspect: str, shown: JudgesShown) -> Compared:
    """Let the user choose the statistic, level and judges. Return the leaderboard of the chosen judges."""
    golden, own = cached_golden(view.golden_id, page), shown.measure
    levels: list[Level] = ["dataset"]
    if view.n_sources < view.n_items:
        levels.append("sample")
    if view.n_systems > 1 and view.kind != "pair":
        levels.append("system")
    usual = own or Measure("spearman", usual_level(golden, aspect))
    usual_name = usual.level if usual.level in levels else "dataset"
    statistic: Statistic = chosen.in_url("statistic", STATISTICS, usual.statistic)
    level: Level = chosen.in_url("level", levels, usual_name)
    with st.popover(tables.measure_heading(Alignment(statistic, level, None, 0)), icon=":material/tune:"):
        words = {name: STATISTIC_NAMES[name] for name in STATISTICS}
        chosen.choose_part("Statistic", "statistic", words, usual.statistic)
        words = {name: LEVEL_NAMES[name].removesuffix(" level") for name in levels}
        means = (
            "Dataset: agreement across all items. Sample: agreement within each source, averaged over sources. "
            "System: agreement between the systems' mean scores and mean labels."
        )
        chosen.choose_part("Level", "level", words, usual_name, help=means)
    judges, hidden = _choose_judges((*shown.entries, *shown.aside), shown)
    named = tuple((entry.judge_id, entry.name) for entry in judges)
    key = (view.golden_id, aspect, named, statistic, level, shown.own, tuple(shown.no_p.items()), SEED)

    def compare() -> tuple[tuple[JudgeEntry, ...], Leaderboard]:
        scores = projects.as_compared(page.store, page.project.project_id, judges)
        entries = tuple(replace(entry, judge=judge) for entry, judge in zip(judges, scores, strict=True))
        # fit the regression once for all choices
        bar = cached(("regression", golden.digest, aspect), lambda: plain_regression(golden, aspect, seed=SEED))
        places = {entry.judge_id: place for place, entry in enumerate(judges)}
        measure, own = Measure(statistic, level), places.get(shown.own)
        board = compare_table(golden, aspect, scores, measure, regression=bar, planned=own, seed=SEED)
        if own is not None and shown.baseline in places:
            board = board.with_planned(own, places[shown.baseline])
        for judge_id in shown.no_p.keys() & places.keys():
            board = board.without_p(places[judge_id], shown.no_p[judge_id])
        return entries, board

    entries, board = cached(("board", *key), compare)
    return Compared(view, golden, aspect, entries, board, key, shown, hidden)


def _choose_judges(
    judges: tuple[JudgeEntry, ...], shown: JudgesShown
) -> tuple[tuple[JudgeEntry, ...], tuple[str, ...]]:
    """Let the user choose judges; return the chosen ones, and the names of those hidden automatically.

    Older versions of the judge are left out until a user adds them. So are judges that would remove many of the current
    judge's items, such as pilots or judges fitted on held-out labels.
    """
    if len(judges) < 2:
        return judges, ()
    ids = [entry.judge_id for entry in judges]
    names = dict(zip(ids, unique_names([entry.judge for entry in judges]), strict=True))
    own = ids.index(shown.own) if shown.own in ids else None
    old = [entry.judge_id for entry in shown.aside if entry.judge_id not in shown.no_p]
    rest = [entry for entry in judges if entry.judge_id not in old]
    few = [rest[place].judge_id for place in judges_to_leave_out([entry.judge for entry in rest], own)]
    key = state.widget(f"compare_out_{'_'.join(ids)}")  # other judges need a new widget
    st.session_state.setdefault(key, [*few, *old])
    n_in = len(judges) - len(st.session_state[key])
    with st.popover(f"{n_in} of {len(judges)} judges", icon=":material/filter_list:"):
        out = st.multiselect(
            "Exclude from the comparison",
            ids,
            format_func=lambda judge_id: names[judge_id],
            key=key,
            persist_state="session",
            max_selections=len(judges) - 1,
            help="Fewer items remain for the comparison if a judge has seen many labels or scored few items.",
        )
    hidden = tuple(names[judge_id] for judge_id in few if judge_id in out)
    return tuple(entry for entry in judges if entry.judge_id not in out), hidden


def choose_row(compared: Compared) -> Row:
    """Let the user choose a judge, and return its row. The default is `compared.subject`."""
    by_id = {compared.judge_of(row).judge_id: row for row in compared.leaderboard.rows}
    picked = st.selectbox(
        "Judge",
        list(by_id),
        index=compared.subject,
        # the widget may still hold a judge that was just removed
        format_func=lambda judge_id: by_id[judge_id].name if judge_id in by_id else judge_id,
        key=state.widget("compare_judge"),
        width=420,
    )
    return by_id.get(picked, compared.leaderboard.rows[compared.subject])


def tell(said: Finding) -> None:
    """Draw a finding as a section of the screen."""
    st.markdown(f"##### {plain(said.headline)}")
    st.caption(plain(said.detail))
    for sentence in said.cautions:
        st.markdown(f":material/warning: {plain(sentence)}")
