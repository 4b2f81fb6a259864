"""The leaderboard as a table for a spreadsheet."""

from __future__ import annotations

from core.comparison.board import Leaderboard, Row
from core.spreadsheets import Cell, csv_text

COLUMNS = (
    "judge kind statistic level alignment interval_low interval_high n n_groups groups_left_out n_unscored unscored "
    "n_seen n_seen_used calls_per_item mae bias exact adjacent quadratic_kappa precision recall f1 kappa reason note "
    "judge_without_one_rater person_without_one_rater beside_people beside_people_low beside_people_high "
    "beside_people_p beside_people_standing beside_people_raters"
).split()


def leaderboard_csv(board: Leaderboard) -> str:
    """A header and a line a judge; undefined is an empty cell.  Names come from users and models: none can run."""
    return csv_text(COLUMNS, (_cells(board, row) for row in board.rows))


def _cells(board: Leaderboard, row: Row) -> list[Cell]:
    """The cells of a row in the order of `COLUMNS`."""
    found, errors, steps, binary = row.alignment, row.errors, row.steps, row.binary
    reasons = "; ".join(f"{count} {reason}" for reason, count in row.unscored.items())
    sides: dict[str, Cell] = {
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
    points: dict[str, Cell] = {
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
    cells = sides | points | _beside(row)
    return [cells[name] for name in COLUMNS]


def _beside(row: Row) -> dict[str, Cell]:
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
