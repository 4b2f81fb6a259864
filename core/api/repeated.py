"""A calibration repeated from its `judge.yaml`: what each part of the judge brings, what its candidates had in common.

The settings stand in the file, and what was answered is found in the reply cache: only what is missing is asked for.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.api.calibrated import CalibratedRun, ablate, calibrate
from core.calibration.analyse import Analyses, Scope, analyse
from core.calibration.case_study import CaseStudy, case_study, refinements
from core.calibration.settings import CalibrationSettings
from core.errors import UsageError
from core.export.judge_reading import kind_of_file, open_file
from core.files import write_json, write_text
from core.judging.registry import CAREFUL, NAMED, make_judge, restore_judge
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.records import GoldenSet, ScoreMatrix, Statistic
from core.settings import Settings
from core.stats import difference_figures
from core.stats.claims import number
from core.wording import word_diff

if TYPE_CHECKING:
    from core.calibration.ablate import Ablation
    from core.report.figures import Drawing

OTHER_RESULT = (
    "The calibration was done again and chose other criteria than the file holds: replies were not kept, or people "
    "changed them. What follows is about the repeated one."
)


@contextmanager
def repeated(
    path: Path | str,
    golden: GoldenSet,
    *,
    judge: str = "",
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Iterator[CalibratedRun]:
    """The calibration that a judge file came from, done again on the same `golden`; its judge is open meanwhile.

    `judge` names the file's judge once more, so that its endpoint may get the key, or its model may be loaded.
    UsageError for a file whose judge was never drafted (fused, RepEval), another golden set, or another judge.
    """
    kind = kind_of_file(path)
    if kind != "judge":
        raise UsageError(
            f"{path}: holds a {'fusion' if kind == 'fusion' else 'RepEval score'}, which never drafted criteria: there "
            "is nothing to take away or to look at. Name the judge.yaml of a calibration."
        )
    card = open_file(path).card
    if card["golden"]["digest"] != golden.digest:
        raise UsageError(
            f"{path}: was calibrated on {card['golden']['name']}, and {golden.name} holds other items or labels. Give "
            "the golden set that it was calibrated on."
        )
    state, here = card["judge"], Settings.from_environment()
    if judge and judge != state["spec"]:
        raise UsageError(f"{path}: was calibrated with {state['spec']}, and {judge} came. Name the same judge.")
    gate = NAMED if judge else CAREFUL
    offline = state["spec"] == "offline"
    with closing(make_judge("offline", here) if offline else restore_judge(state, here, replies, gate=gate)) as asked:
        yield calibrate(
            golden,
            card["task"]["aspect"],
            asked,
            settings=CalibrationSettings.from_json(card["settings"]),
            definition=card["task"]["definition"],
            replies=replies,
            progress=progress,
        )


def other_result(path: Path | str, run: CalibratedRun) -> tuple[str, ...]:
    """A sentence where the repeated calibration chose other criteria than stand in the file."""
    written = [entry["text"] for entry in open_file(path).card["criteria"]]
    return () if written == [criteria.text for criteria in run.chosen] else (OTHER_RESULT,)


def ablation_json(result: Ablation, out: str = "") -> dict[str, Any]:
    """What `ablate --json` prints."""
    rows = [
        {
            "variant": row.key,
            "what": row.what,
            "criteria": len(row.criteria_ids),
            "calibration": row.calibration.as_json(),
            "held_out": row.held_out.as_json(),
            "difference": None
            if row.difference is None
            else {
                "value": row.difference,
                "interval": None if row.interval is None else [row.interval.low, row.interval.high],
                "p": row.p,
                "p_holm": row.p_holm,
                "n": row.n,
            },
            "reason": row.reason,
            "first_look": row.first_look,
        }
        for row in result.rows
    ]
    about = {"aspect": result.task.aspect, "judge": result.judge_spec, "n_held_out": result.n_held_out}
    return about | {"rows": rows, "left_out": dict(result.left_out), "calls": result.calls, "out": out}


def save_ablation(result: Ablation, folder: Path) -> dict[str, Any]:
    """Write `ablation.html` and `summary.json` into `folder`; returns the last."""
    from core.report.figures import measure_name
    from core.report.figures.analyses import ablation_figure

    held, body = result.rows[0].held_out, ablation_json(result, str(folder))
    figure = ablation_figure(result.rows, measure=measure_name(held.statistic, held.level))
    lines = [result.opening, *(f"{row.key}: {row.what}" for row in result.rows)]
    lines += [f"left out: {name}: {reason}" for name, reason in result.left_out.items()]
    words = f"{held.n:,} held-out items; differences are paired over sources, 95 % intervals."
    write_text(folder / "ablation.html", figure_page(f"Ablation: {result.task.aspect}", lines, {words: figure}))
    write_json(folder / "summary.json", body)
    return body


@dataclass(frozen=True)
class CandidateLook:
    """The analyses of a calibration's candidates, and its case study (None where nothing was refined)."""

    aspect: str
    analyses: Analyses
    case: CaseStudy | None

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `analyse --json` prints."""
        found, measured = self.analyses, self.analyses.pool
        pool = {name: getattr(measured, name) for name in ("scope", "statistic", "level", "n_items", "n_candidates")}
        return {
            "aspect": self.aspect,
            "pool": pool | {"n_measured": len(measured.places), "n_undefined": measured.n_undefined},
            "by_size": asdict(found.by_size),
            "by_length": asdict(found.by_length),
            "by_pattern": asdict(found.by_pattern),
            "candidates": [asdict(place) for place in measured.places],
            "case_study": None if self.case is None else _case_json(self.case),
            "out": out,
        }

    def save(self, folder: Path) -> dict[str, Any]:
        """Write `analyses.html` and `summary.json` into `folder`; returns the last."""
        from core.report.figures.analyses import length_figure, pattern_figure, size_figure

        found, body = self.analyses, self.as_json(str(folder))
        figures = {
            f"By exemplar size. {found.by_size.sentence}": size_figure(found.pool),
            f"By length. {found.by_length.sentence}": length_figure(found.pool, found.by_length),
            f"By pattern. {found.by_pattern.sentence}": pattern_figure(found.pool, found.by_pattern.groups),
        }
        said = [
            f"{len(found.pool.places)} of {found.pool.n_candidates} candidates, each on the same {found.pool.n_items} "
            "calibration items, whose labels shaped and chose them: what made criteria win here, not how good they are."
        ]
        diff = "" if self.case is None else _case_html(self.case, found.pool.statistic)
        write_text(folder / "analyses.html", figure_page(f"Candidates: {self.aspect}", said, figures, diff))
        write_json(folder / "summary.json", body)
        return body


def look_at_candidates(run: CalibratedRun, scope: Scope = "complete") -> CandidateLook:
    """Alignment by exemplar size, length and pattern (001 Figures 3, 4), and the case study (its Table 7).

    UsageError for a run without a single draft that was measured.
    """
    found = analyse(run, scope)
    if not found.pool.places:
        raise UsageError(f"There is nothing to analyse: {found.pool.why_empty}")
    return CandidateLook(run.task.aspect, found, _case(run))


def _case(run: CalibratedRun) -> CaseStudy | None:
    """The refinement with the largest inner gain beside its parent, both scored on the calibration items."""
    listed = refinements(run)
    if not listed:
        return None
    child = listed[0].criteria
    parent = next(each.criteria for each in run.candidates if each.criteria.criteria_id == child.provenance.parents[0])
    positions = list(run.split.calibration)
    with run.reopened() as judge:
        ready = judge.prepare(run.task, [run.golden.items[k] for k in positions])
        scored = ready.score(run.task, [run.golden.items[k] for k in positions], [child, parent])
    values = np.full((2, len(run.golden.items)), np.nan)
    values[:, positions] = scored.values
    matrix = ScoreMatrix((child.criteria_id, parent.criteria_id), run.golden.item_ids, values)
    return case_study(run, run.golden, matrix, child.criteria_id)


def _case_json(case: CaseStudy) -> dict[str, Any]:
    def each(side: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value.as_json() for name, value in side.items()}

    return {
        "before": case.parent.text,
        "after": case.child.text,
        "status": case.status,
        "inner_gain": case.inner_gain,
        "alignment_before": each(case.before),
        "alignment_after": each(case.after),
        "differences": each(case.differences),
        "n": case.n,
    }


def _case_html(case: CaseStudy, statistic: Statistic) -> str:
    """The refinement as a word diff, with what it changed; texts are never HTML."""
    before, after, change = case.before[statistic], case.after[statistic], case.differences[statistic]
    figures = f"{difference_figures(change.value, change.interval, change.p, change.p_reason)}, n = {case.n:,}"
    told = (
        f"One refinement, {case.status}: {number(before.value, 3)} before, {number(after.value, 3)} after; {figures}, "
        "on calibration items, which flatter. Struck out: what it took away; underlined: what it added."
    )
    tags = {"same": "span", "removed": "del", "added": "ins"}
    pieces = word_diff(case.parent.text, case.child.text)
    marked = "".join(f"<{tags[piece.change]}>{html.escape(piece.text)}</{tags[piece.change]}>" for piece in pieces)
    return f"<h2>Before and after refining</h2><p>{html.escape(told)}</p><p>{marked}</p>"


def figure_page(title: str, lines: Sequence[str], figures: Mapping[str, Drawing], more: str = "") -> str:
    """One HTML page that needs no network: `lines` as paragraphs, figures each beneath its words, then `more`.

    All words are escaped but those of `more`, which is HTML.
    """
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#14202E}"
    style += "p{white-space:pre-wrap;line-height:1.4}svg{max-width:100%;height:auto}h2{font-size:1.2rem}"
    style += "ins{background:#CBEADB}del{background:#FBE0DC}"
    paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in lines)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    drawn = "".join(f"<p>{html.escape(words)}</p>{figure.svg()}" for words, figure in figures.items())
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body><h1>{html.escape(title)}</h1>{paragraphs}{drawn}'
        f"{more}</body></html>\n"
    )


__all__ = [
    "CandidateLook",
    "ablate",
    "ablation_json",
    "figure_page",
    "look_at_candidates",
    "other_result",
    "repeated",
    "save_ablation",
]
