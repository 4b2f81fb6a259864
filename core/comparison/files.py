"""The leaderboard as a table for a spreadsheet.  Names come from users and models: no cell may start a formula."""

from __future__ import annotations

import csv
import io

from core.comparison.board import Leaderboard, Row

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

COLUMNS = (
    "judge kind statistic level alignment interval_low interval_high n n_groups groups_left_out n_unscored unscored "
    "n_seen n_seen_used calls_per_item mae bias exact adjacent quadratic_kappa precision recall f1 kappa reason note "
    "judge_without_one_rater person_without_one_rater beside_people beside_people_low beside_people_high "
    "beside_people_p beside_people_standing beside_people_raters"
).split()


def leaderboard_csv(board: Leaderboard) -> str:
    """A header and a line a judge; undefined is an empty cell.  Text that a spreadsheet would take for a formula gets
    an apostrophe in front."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        writer.writerow({name: harmless(value) for name, value in _cells(board, row).items()})
    return text.getvalue()


def harmless(value: object) -> object:
    """`value` as a cell: text that would start a formula gets an apostrophe in front, None is empty."""
    if value is None:
        return ""
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def _cells(board: Leaderboard, row: Row) -> dict[str, object]:
    found, errors, steps, binary = row.alignment, row.errors, row.steps, row.binary
    reasons = "; ".join(f"{count} {reason}" for reason, count in row.unscored.items())
    sides = {
        "judge": row.name,
        "kind": row.kind,
        "statistic": board.statistic,
        "level": board.level,
        "alignment": found.value,
        "interval_low": found.interval.low if found.interval else None,
        "interval_high": found.interval.high if found.interval else None,
        "n": found.n,
        "n_groups": found.n_groups,
        "groups_left_out": found.n_left_out,
        "n_unscored": row.n_unscored,
        "unscored": reasons,
        "n_seen": row.n_seen,
        "n_seen_used": row.n_seen_used,
        "calls_per_item": row.calls_per_item,
        "reason": found.reason or row.scale_note,
        "note": row.note,
    }
    points = {
        "mae": errors.mae if errors else None,
        "bias": errors.bias if errors else None,
        "exact": steps.exact if steps else None,
        "adjacent": steps.adjacent if steps else None,
        "quadratic_kappa": steps.quadratic_kappa if steps else None,
        "precision": binary.precision if binary else None,
        "recall": binary.recall if binary else None,
        "f1": binary.f1 if binary else None,
        "kappa": binary.kappa if binary else None,
    }
    return {name: (sides | points | _beside(row))[name] for name in COLUMNS}


def _beside(row: Row) -> dict[str, object]:
    """The judge and one rater against the mean of the other raters, and judge minus rater; empty without raters."""
    told = row.people
    interval = told.interval if told else None
    return {
        "judge_without_one_rater": told.judge.value if told else None,
        "person_without_one_rater": told.person.value if told else None,
        "beside_people": told.difference if told else None,
        "beside_people_low": interval.low if interval else None,
        "beside_people_high": interval.high if interval else None,
        "beside_people_p": told.p if told else None,
        "beside_people_standing": told.standing if told else None,
        "beside_people_raters": told.n_raters if told else None,
    }
