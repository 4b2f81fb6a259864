"""Below the leaderboard: each judge beside a person against the same targets, and the Alternative Annotator Test."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd
import streamlit as st

from core.comparison import annotator_tests
from core.projects.labelling import rated_words
from core.stats import (
    EPSILONS,
    NO_SINGLE_RATINGS,
    STANDING_WORDS,
    AnnotatorTest,
    BesidePeople,
    annotator_test_words,
    beside_people_words,
    change_figures,
    margin_words,
    p_figure,
)
from pages.compare.choices import Compared, finding_of
from pages.compare.sections import choose_row
from pages.ui import grid, state, tables
from pages.ui.grid import Column
from pages.ui.screens import plain

Tests = tuple[AnnotatorTest | None, ...]
RATERS_ARE = {name: f"{name} (ε = {epsilon:g})" for name, epsilon in EPSILONS.items()}
VERDICTS = {True: "passed", False: "not passed", None: "no verdict"}


def draw(compared: Compared) -> None:
    """Every judge beside a person; one judge by rater on request."""
    leaderboard = compared.leaderboard
    if leaderboard.problem or all(row.people is None for row in leaderboard.rows):
        why = (
            leaderboard.problem
            or f"How well people agree is not known, {NO_SINGLE_RATINGS}: {leaderboard.ceiling.reason}"
        )
        st.info(plain(why), icon=":material/group:")
        return
    st.markdown(plain(finding_of(compared).people))
    st.caption(
        plain(
            f"People: the single ratings of {rated_words(compared.shown.rated_in)}. The judge takes each rater's place "
            "in turn, on the same items, so neither has the easier target."
        )
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        raters_are = st.segmented_control(
            "In the annotator test the raters are",
            list(RATERS_ARE),
            format_func=lambda choice: RATERS_ARE[choice],
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
    tests = _kept_tests((compared.key, raters_are, standardise), compared, EPSILONS[raters_are], standardise)
    _draw_table(compared, *tests)
    st.caption(plain(_reading()))
    with st.expander("By rater", icon=":material/group:"):
        at = choose_row(compared, "compare_people_judge")
        _draw_raters(compared, at, [test[at] for test in tests])


@st.cache_resource(max_entries=64, show_spinner="Testing the judges beside people …")
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


def _draw_table(compared: Compared, usual: Tests, papers: Tests) -> None:
    rows = compared.leaderboard.rows
    comparisons = [row.people for row in rows]
    frame = pd.DataFrame(
        {
            "judge": [row.name for row in rows],
            "beside a person": [
                tables.DASH
                if beside is None or beside.difference is None or beside.withheld
                else STANDING_WORDS[beside.standing]
                for beside in comparisons
            ],
            "the judge": _floats([beside.judge.value if beside else None for beside in comparisons]),
            "a person": _floats([beside.person.value if beside else None for beside in comparisons]),
            "judge minus person": [_difference(beside) for beside in comparisons],
            "p": [p_figure(beside.p) if beside and beside.p is not None else tables.DASH for beside in comparisons],
            "annotator test": [VERDICTS[test.passes] if test else tables.DASH for test in usual],
            "ω": _floats([test.omega if test else None for test in usual]),
            "ρ": _floats([test.rho if test else None for test in usual]),
            "ω over items": _floats([test.omega if test else None for test in papers]),
            "n": [beside.n_items if beside else 0 for beside in comparisons],
        }
    )
    columns = {
        "judge": Column(width=240),
        "the judge": Column(digits=2, help=f"{compared.measure} with the mean of the other raters"),
        "a person": Column(digits=2, help="one rater with the mean of the others, on the same items"),
        "judge minus person": Column(
            help="with its interval, corrected for the number of judges; jackknife over sources, t"
        ),
        "ω": Column(digits=2, help="share of raters that the judge could stand in for"),
        "ω over items": Column(digits=2, help="The paper's form. It takes items of one source as independent."),
        "ρ": Column(digits=2, help="how often the judge does as well or better; decides nothing"),
    }
    grid.draw(frame, columns, alt=f"Judges beside a person by {compared.measure}", rows=12)


def _draw_raters(compared: Compared, at: int, tests: Sequence[AnnotatorTest | None]) -> None:
    """One judge beside each rater, and the annotator test in a sentence."""
    beside, usual = compared.leaderboard.rows[at].people, tests[0]
    if beside is None:
        return
    st.markdown(plain(beside_people_words(beside, compared.measure)))
    duels = [usual.by_rater[k] if usual else None for k in range(len(beside.by_rater))]
    if usual is not None:
        st.markdown(plain(annotator_test_words(usual)))
    else:
        st.markdown("No annotator test: this judge has a scale of its own. Standardise each rater first to test it.")
    grid.draw(
        pd.DataFrame(
            {
                "rater": [rater.rater for rater in beside.by_rater],
                "the judge": _floats([rater.judge for rater in beside.by_rater]),
                "the rater": _floats([rater.person for rater in beside.by_rater]),
                "difference": _floats([rater.difference for rater in beside.by_rater]),
                "n": [rater.n_items for rater in beside.by_rater],
                "judge as good": _shares([duel.judge_wins if duel else None for duel in duels]),
                "rater as good": _shares([duel.rater_wins if duel else None for duel in duels]),
                "p": [p_figure(duel.p) if duel and duel.p is not None else tables.DASH for duel in duels],
                "could stand in": [
                    ("yes" if duel.replaceable else "no") if duel and duel.p is not None else tables.DASH
                    for duel in duels
                ],
            }
        ),
        {
            **{name: Column(digits=2) for name in ("the judge", "the rater")},
            "difference": Column(digits=2, signed=True),
            **{name: Column(digits=0, unit=" %") for name in ("judge as good", "rater as good")},
            "p": Column(help="annotator test, before the correction over raters"),
        },
        alt="The judge beside each rater",
    )


def _reading() -> str:
    return (
        f"{margin_words()} All of it speaks of these raters; others may be better or worse. Annotator test: Calderon, "
        "Reichart and Dror (2025); each item is held against the other raters' single labels, ω is the share of raters "
        "that the judge could stand in for (Benjamini–Yekutieli at 0.05; 0.50 passes), ρ how often it does as well or "
        "better. Where items share sources, the test is clustered by source. “ω over items” is the paper's form, which "
        "takes such items as independent and passes judges too often."
    )


def _difference(beside: BesidePeople | None) -> str:
    if beside is None or beside.difference is None:
        return tables.DASH
    return change_figures(beside.difference, beside.interval)


def _floats(values: Sequence[float | None]) -> pd.Series:
    return pd.Series(values, dtype="float64")


def _shares(values: Sequence[float | None]) -> pd.Series:
    return pd.Series([None if value is None else 100 * value for value in values], dtype="float64")
