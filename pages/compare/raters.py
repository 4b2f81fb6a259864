"""Each judge compared with a rater against the same targets, and the Alternative Annotator Test."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from core.comparison import annotator_tests
from core.findings import Finding
from core.findings.agreement import STANDING_WORDS, annotator_finding, margin_words, rater_finding
from core.stats import (
    EPSILONS,
    NO_SINGLE_RATINGS,
    AnnotatorTest,
)
from core.wording import change_figures, p_figure
from pages.compare.choices import Compared, choose_row
from pages.ui import grid, state, tables
from pages.ui.grid import Column
from pages.ui.screens import plain

Tests = tuple[AnnotatorTest | None, ...]
VERDICTS = {True: "passed", False: "not passed", None: "no verdict"}
READING = (
    "All of it speaks of these raters; others may be better or worse. Annotator test: Calderon, Reichart and Dror "
    "(2025); each item is held against the other raters' single labels, ω is the share of raters that the judge could "
    "stand in for (Benjamini–Yekutieli at 0.05; 0.50 passes), ρ how often it does as well or better. Where items share "
    "sources, the test is clustered by source. “ω over items” is the paper's form, which takes such items as "
    "independent and passes judges too often."
)


def tell(said: Finding) -> None:
    """A finding below the headline of a screen."""
    st.markdown(plain(said.headline))
    st.caption(plain(" ".join((said.detail, *said.cautions))))


def draw(compared: Compared) -> None:
    """Every judge compared with a rater; one judge rater by rater below."""
    board = compared.leaderboard
    if board.problem or all(row.people is None for row in board.rows):
        unknown = f"How well raters agree is not known, {NO_SINGLE_RATINGS}: {board.ceiling.reason}"
        st.info(plain(board.problem or unknown), icon=":material/group:")
        return
    people, shown = board.rows[compared.subject].people, compared.shown
    if people is not None:
        name = f"Version {shown.version.number}" if shown.version and compared.has_own else "The best judge"
        tell(rater_finding(people, compared.measure, name))
    st.caption(
        plain(
            f"Raters: the single ratings of {compared.shown.rated_in or 'the file'}. The judge takes each rater's "
            "place in turn, on the same items, so neither has the easier target."
        )
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        raters_are = st.segmented_control(
            "In the annotator test the raters are",
            list(EPSILONS),
            format_func=lambda name: f"{name} (ε = {EPSILONS[name]:g})",
            default="skilled",
            required=True,
            key=state.widget("compare_raters_are"),
            help="A judge costs less, so the test lets it be worse than a rater by up to ε.",
        )
        standardise = st.toggle(
            "Standardise each rater first",
            key=state.widget("compare_standardise"),
            help="Takes mean and spread out of every rater's labels, for raters who use the scale differently, and for "
            "judges on a scale of their own.",
        )
    usual, papers = _kept_tests((compared.key, raters_are, standardise), compared, EPSILONS[raters_are], standardise)
    rows = []
    for row, test, paper in zip(board.rows, usual, papers, strict=True):
        beside, words, difference = row.people, tables.DASH, tables.DASH
        if beside is not None and beside.difference is not None:
            words = tables.DASH if beside.withheld else STANDING_WORDS[beside.standing]
            difference = change_figures(beside.difference, beside.interval)
        rows.append(
            {
                "judge": row.name,
                "compared with a rater": words,
                "the judge": beside and beside.judge.value,
                "a rater": beside and beside.person.value,
                "judge minus rater": difference,
                "p": p_figure(beside and beside.p, tables.DASH),
                "annotator test": VERDICTS[test.passes] if test else tables.DASH,
                "ω": test and test.omega,
                "ρ": test and test.rho,
                "ω over items": paper and paper.omega,
                "n": beside.n_items if beside else 0,
            }
        )
    columns = {
        "judge": Column(width=240),
        "the judge": Column(digits=2, help=f"{compared.measure} with the mean of the other raters"),
        "a rater": Column(digits=2, help="one rater with the mean of the others, on the same items"),
        "judge minus rater": Column(
            help="with its interval, corrected for the number of judges; jackknife over sources, t"
        ),
        "ω": Column(digits=2, help="share of raters that the judge could stand in for"),
        "ρ": Column(digits=2, help="how often the judge does as well or better; decides nothing"),
        "ω over items": Column(digits=2, help="The paper's form. It takes items of one source as independent."),
    }
    grid.draw(pd.DataFrame(rows), columns, alt=f"Judges compared with a rater by {compared.measure}", rows=12)
    st.caption(plain(f"{margin_words()} {READING}"))
    with st.expander("By rater", icon=":material/group:"):
        at = choose_row(compared)
        _draw_raters(compared, at, usual[at])


@st.cache_resource(max_entries=64, show_spinner="Testing the judges against the raters …")
def _kept_tests(key: Hashable, _compared: Compared, _epsilon: float, _standardise: bool) -> tuple[Tests, Tests]:
    """The test, clustered by source where items share sources, and the paper's own form."""
    judges = [entry.judge for entry in _compared.judges]
    board, own, reason = _compared.leaderboard, _compared.shown.own, _compared.shown.seen.p_reason

    def tested(clustered: bool | None) -> Tests:
        tests = annotator_tests(
            _compared.golden, board, judges, epsilon=_epsilon, standardise=_standardise, clustered=clustered
        )
        return tuple(
            test.without_claim(reason) if test and _compared.judge_of(row).judge_id == own else test
            for row, test in zip(board.rows, tests, strict=True)
        )

    return tested(None), tested(False)


def _draw_raters(compared: Compared, at: int, test: AnnotatorTest | None) -> None:
    """One judge compared with each rater, and the annotator test in a sentence."""
    beside = compared.leaderboard.rows[at].people
    if beside is None:
        return
    tell(rater_finding(beside, compared.measure))
    own_scale = "No annotator test: this judge has a scale of its own. Standardise each rater first to test it."
    if test is None:
        st.markdown(own_scale)
    else:
        tell(annotator_finding(test))
    rows = []
    for k, rater in enumerate(beside.by_rater):
        duel = test.by_rater[k] if test else None
        stands_in = tables.DASH if duel is None or duel.p is None else "yes" if duel.replaceable else "no"
        rows.append(
            {
                "rater": rater.rater,
                "the judge": rater.judge,
                "the rater": rater.person,
                "difference": rater.difference,
                "n": rater.n_items,
                "judge as good": duel and duel.judge_wins and 100 * duel.judge_wins,
                "rater as good": duel and duel.rater_wins and 100 * duel.rater_wins,
                "p": p_figure(duel and duel.p, tables.DASH),
                "could stand in": stands_in,
            }
        )
    columns = {
        **{name: Column(digits=2) for name in ("the judge", "the rater")},
        "difference": Column(digits=2, signed=True),
        **{name: Column(digits=0, unit=" %") for name in ("judge as good", "rater as good")},
        "p": Column(help="annotator test, before the correction over raters"),
    }
    grid.draw(pd.DataFrame(rows), columns, alt="The judge compared with each rater")
