"""Printed values of the papers that the reference data gives again, and the commands that print their tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

import core
from tests.core.local_models import save_model
from tests.papers import autocalibrate, closer_look
from tests.papers.printed import FILES, printed

BETTER_READ = {
    ("score only, auto-CoT", "groundedness", "pearson sample"): 0.698,
    ("score only, auto-CoT", "groundedness", "kendall sample"): 0.591,
    ("analyze-rate", "groundedness", "pearson sample"): 0.735,
}
"""Where our parser is more than .01 from print, and its value, higher each time.

On this 0 to 1 scale the paper's parser drops what follows the point, so that 0.5 is taken for 0.  It also takes the
first digit of replies that repeat a fact or number their line.
"""

AVERAGES = [
    ("Newsroom", "Table 1", "ROUGE-1", "spearman", 0.119),
    ("Newsroom", "Table 1", "BARTScore (CNN)", "kendall", 0.519),
    ("Newsroom", "Table 1", "ChatGPT (stars)", "spearman", 0.460),
    ("Newsroom", "Table 1", "AutoCalibrate (GPT-4)", "kendall", 0.573),
    ("SummEval", "Table 2", "PRISM", "kendall", 0.212),
    ("SummEval", "Table 2", "AutoCalibrate (GPT-4)", "spearman", 0.529),
    ("SummEval", "Table 8", "AutoCalibrate (GPT-4), no CoT", "spearman", 0.523),
]
"""Averages over the aspects that the paper prints in its last columns."""


@pytest.mark.parametrize(("dataset", "table", "judge", "statistic", "average"), AVERAGES)
def test_rows_have_the_average_that_is_printed_with_them(
    dataset: str, table: str, judge: str, statistic: str, average: float
) -> None:
    row = [
        one.value
        for one in printed("AutoCalibrate")
        if one[:2] == (table, dataset) and one.judge == judge and one.column.measure.startswith(statistic)
    ]
    assert len(row) == 4
    assert mean(row) == pytest.approx(average, abs=0.0011)  # the papers averaged before rounding


@pytest.mark.parametrize("dataset", ["Newsroom", "SummEval", "SFRES", "SFHOT", "QAGS-CNN/DM", "QAGS-XSUM"])
def test_stored_metrics_give_the_rows_of_autocalibrate(shared_data: Path, dataset: str) -> None:
    golden = core.load_golden(shared_data / f"{FILES[dataset]}.jsonl.gz")
    n = 0
    for one in printed("AutoCalibrate"):
        metric = autocalibrate.METRICS.get(one.judge.removesuffix(" (multi-task)"))
        if metric is None or one.dataset != dataset:
            continue
        value = autocalibrate.stored_metric(golden, metric, one.column)
        if value is None:
            continue
        n += 1
        # ROUGE-L depends on how texts are cut into sentences, which the paper does not say
        assert value == pytest.approx(one.value, abs=0.011 if one.judge == "ROUGE-L" else 0.000501), one
    assert n >= 9


@pytest.mark.parametrize("judge", closer_look.REPLIES)
def test_recorded_replies_give_the_tables_of_a_closer_look(shared_data: Path, judge: str) -> None:
    """The paper's parser gives the printed values; ours, read for one aspect, is within .01, or better."""
    golden = core.load_golden(shared_data / "topical_chat.jsonl.gz")
    values = [one for one in printed("A Closer Look") if (one.dataset, one.judge) == ("Topical-Chat", judge)]
    assert len(values) == (12 if judge == "ChatGPT rate-explain" else 16)
    for one in values:
        replies = closer_look.REPLIES[judge]
        theirs = closer_look.aligned(shared_data, golden, "paper", replies, one.column)
        assert theirs is not None
        assert f"{theirs:.3f}" == f"{one.value:.3f}", one
        if one.column.aspect != "groundedness":
            continue
        ours = closer_look.aligned(shared_data, golden, "concord", replies, one.column)
        assert ours is not None
        better = BETTER_READ.get((judge.removeprefix("ChatGPT "), *one.column))
        assert abs(ours - one.value) <= 0.01 if better is None else round(ours, 3) == better > one.value, one


@pytest.mark.parametrize(
    ("script", "options", "rows"),
    [
        (
            "autocalibrate",
            "--sets QAGS-XSUM",
            ["AutoCalibrate (GPT-4), no refinement", "ours: offline, calibrated, held-out"],
        ),
        (
            "closer_look",
            "--sets Topical-Chat --aspects naturalness",
            ["ChatGPT free text", "ours: ChatGPT rate-explain, paper parser"],
        ),
        ("repeval", "--sets BAGEL --model", ["RepEval PCA (20 pairs), text only", "ours: "]),
        (
            "fusion_eval",
            "--sets SummEval --aspects fluency --with overlap rouge2_source_p",
            ["G-Eval-4, no CoT", "ours: fusion"],
        ),
    ],
)
def test_a_command_prints_the_table_of_a_paper_and_ours(
    run_script: Callable[..., tuple[int, str, str]],
    shared_data: Path,
    tmp_path: Path,
    script: str,
    options: str,
    rows: list[str],
) -> None:
    words = options.split()
    if words[-1] == "--model":
        save_model(tmp_path / "model", chat=False)
        words.append(str(tmp_path / "model"))
    code, out, err = run_script(f"tests/papers/{script}.py", "--data", str(shared_data), *words)
    assert code == 0, err
    lines = out.splitlines()
    for row in rows:
        (line, *_) = [line for line in lines if line.startswith(row)]
        assert any(cell.replace(".", "").isdigit() for cell in line.removeprefix(row).split())
