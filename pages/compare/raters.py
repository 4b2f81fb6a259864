"""Compare judges with raters, both measured against the other raters, and run the Alternative Annotator Test."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.comparison import annotator_tests
from core.findings.agreement import STANDING_WORDS, annotator_finding, margin_words, rater_finding
from core.stats import EPSILONS, NO_SINGLE_RATINGS, AnnotatorTest
from core.wording import change_figures, p_figure
from pages.compare.choices import Compared, choose_row, tell
from pages.ui import grid, state, tables
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.screens import plain

Tests = tuple[AnnotatorTest | None, ...]
VERDICTS = {True: "passed", False: "not passed", None: "no verdict"}
READING = (
    "These figures apply only to these raters. The annotator test is by Calderon, Reichart and Dror (2025). The test "
    "is clustered by source if items share sources. The judge passes if it could replace at least half of the raters "
    "(ω ≥ 0.50, Benjamini–Yekutieli at 0.05). The column ρ shows how often the judge does at least as well as a rater."
)


def draw(compared: Compared) -> None:
    """Draw a table that compares each judge with a rater, and a table that compares one judge with each rater."""
    board, version = compared.leaderboard, compared.version
    if board.problem or all(row.people is None for row in board.rows):
        unknown = f"Agreement between raters is unknown, {NO_SINGLE_RATINGS}: {board.ceiling.reason}"
        st.info(plain(board.problem or unknown), icon=":material/group:")
        return
    if (people := board.rows[compared.subject].people) is not None:
        tell(rater_finding(people, compared.measure, f"Version {version.number}" if version else "The best judge"))
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        raters_are = st.segmented_control(
            "Raters in the annotator test",
            list(EPSILONS),
            format_func=lambda name: f"{name} (ε = {EPSILONS[name]:g})",
            default="skilled",
            required=True,
            key=state.widget("compare_raters_are"),
            help="Because a judge costs less, the test allows it to be worse than a rater by up to ε.",
        )

    def tested() -> Tests:
        judges, no_p = [entry.judge for entry in compared.judges], compared.shown.no_p
        tests = annotator_tests(compared.golden, board, judges, epsilon=EPSILONS[raters_are])
        return tuple(
            test and test.without_claim(no_p.get(compared.judge_of(row).judge_id, ""))
            for row, test in zip(board.rows, tests, strict=True)
        )

    tests = cached(("annotators", *compared.key, raters_are), tested)
    rows = []
    for row, test in zip(board.rows, tests, strict=True):
        people, words, difference = row.people, tables.DASH, tables.DASH
        if people is not None and people.difference is not None:
            words = "not tested" if people.withheld else STANDING_WORDS[people.standing]
            difference = change_figures(people.difference, people.interval)
        rows.append(
            {
                "judge": row.name,
                "compared with a rater": words,
                "the judge": people and people.judge.value,
                "a rater": people and people.person.value,
                "judge minus rater": difference,
                "p": p_figure(people and people.p, tables.DASH),
                "annotator test": VERDICTS[test.passes] if test else tables.DASH,
                "ω": test and test.omega,
                "ρ": test and test.rho,
                "n": people.n_items if people else 0,
            }
        )
    frame = pd.DataFrame(rows)
    if frame["n"].nunique() == 1:  # shown in the line above the table
        frame = frame.drop(columns="n")
    columns = {
        "judge": Column(width=240),
        "the judge": Column(digits=2, help=f"{compared.measure} between the judge and the mean of the other raters"),
        "a rater": Column(digits=2, help="Agreement of one rater with the mean of the others, on the same items"),
        "judge minus rater": Column(
            help="The interval is corrected for the number of judges (jackknife over sources, t distribution)."
        ),
        "ω": Column(digits=2, help="Share of raters that the judge could replace"),
        "ρ": Column(digits=2, help="How often the judge does at least as well as a rater. For information only."),
    }
    grid.draw(frame, columns, alt=f"Judges compared with a rater by {compared.measure}", rows=12)
    st.caption(plain(f"{margin_words()} {READING}"))
    with st.expander("By rater", icon=":material/group:"):
        _draw_raters(compared, tests)


def _draw_raters(compared: Compared, tests: Tests) -> None:
    """Draw one judge compared with each rater, and its annotator test in a sentence."""
    row = choose_row(compared)
    people, test = row.people, tests[compared.leaderboard.rows.index(row)]
    if people is None:
        return
    tell(rater_finding(people, compared.measure))
    if test is None:
        st.markdown("The annotator test isn't possible, because this judge uses its own scale.")
    else:
        tell(annotator_finding(test))
    rows = []
    for k, rater in enumerate(people.by_rater):
        duel = test.by_rater[k] if test else None
        rows.append(
            {
                "rater": rater.rater,
                "the judge": rater.judge,
                "the rater": rater.person,
                "difference": rater.difference,
                "n": rater.n_items,
                "judge as good": duel and duel.judge_wins and round(100 * duel.judge_wins),
                "rater as good": duel and duel.rater_wins and round(100 * duel.rater_wins),
                "p": p_figure(duel and duel.p, tables.DASH),
                "could replace": duel.replaceable if duel and duel.p is not None else None,
            }
        )
    columns = {
        **{name: Column(digits=2) for name in ("the judge", "the rater")},
        "difference": Column(digits=2, signed=True),
        **{name: Column(digits=0, unit=" %") for name in ("judge as good", "rater as good")},
        "p": Column(help="From the annotator test, before the correction for the number of raters"),
    }
    grid.draw(pd.DataFrame(rows), columns, alt="The judge compared with each rater")
