"""`monitor` with a real offline judge: nothing scored twice, anchors at every look, a judge and systems that move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.cli.main import main
from core.comparison.monitoring import (
    ANCHORS,
    VERDICTS,
    Monitored,
    MonitorSettings,
    read_traffic,
)
from core.data import load_golden
from core.errors import GoldenError, JobError, UsageError
from core.findings.over_time import monitor_finding

ASPECT = "relevance"


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> list[Path]:
    """Ten days of 40 texts, a file a day; from the eighth on they are other texts, cut off in the middle."""
    golden = load_golden(repository / "sample_data" / "summaries.jsonl")
    labels, rng, place = golden.labels(ASPECT), np.random.default_rng(0), tmp_path_factory.mktemp("traffic")
    files = []
    for day in range(10):
        rows = []
        for k in range(40):
            chosen = int(rng.integers(len(golden.items)))
            item = golden.items[chosen]
            words = f"{item.target} Seen on day {day}, number {k}.".split()
            text = " ".join(words[: len(words) // 4] if day >= 7 else words)
            row = {"id": f"{day}-{k}", "source": f"{item.source} Edition {day}-{k}.", "target": text}
            row |= {"model": "old" if day < 7 else "new", "timestamp": f"2026-11-{day + 1:02d} 10:00"}
            if k < 12 and day < 7:
                row[f"human_{ASPECT}"] = labels[chosen]
            rows.append(json.dumps(row))
        files.append(place / f"day{day}.jsonl")
        files[-1].write_text("\n".join(rows))
    return files


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def look(traffic: list[Path], judge_file: Path, out: Path, **more: object) -> Monitored:
    return core.monitor(traffic, judge_file, out, MonitorSettings(**more))  # type: ignore[arg-type]


def test_a_day_later_only_the_new_texts_are_scored(
    traffic: list[Path], judge_file: Path, tmp_path: Path, repository: Path
) -> None:
    anchors = repository / "sample_data" / "summaries.jsonl"
    first = look(traffic[:4], judge_file, tmp_path, anchors=anchors)
    assert (first.n_new, first.n_known) == (160, 0)
    assert first.look is not None
    assert first.look.change is None  # the first look, the reference for later ones
    again = look(traffic[:5], judge_file, tmp_path, anchors=anchors)
    assert (again.n_new, again.n_known) == (40, 160)
    assert again.look is not None
    assert (again.look.n, again.look.change, again.look.moved) == (2, 0.0, False)
    assert again.alpha == 0.025  # the other half is the anchors'
    lines = [json.loads(line) for line in (tmp_path / VERDICTS).read_text().splitlines()]
    assert len({line["item_id"] for line in lines}) == len(lines) == 200
    assert not list(tmp_path.glob("new-*"))


def test_the_same_figures_in_one_call_or_many(traffic: list[Path], judge_file: Path, tmp_path: Path) -> None:
    for n in (2, 5, 9):
        daily = look(traffic[:n], judge_file, tmp_path / "daily")
    assert daily.periods == look(traffic[:9], judge_file, tmp_path / "once").periods


def test_systems_that_fell_are_told_from_a_judge_that_did(
    traffic: list[Path], judge_file: Path, tmp_path: Path, repository: Path
) -> None:
    anchors = repository / "sample_data" / "summaries.jsonl"
    alone = look(traffic, judge_file, tmp_path / "alone", by="version")
    assert alone.who == "inconclusive"
    assert alone.alarm
    look(traffic[:7], judge_file, tmp_path / "anchored", anchors=anchors, by="version")
    fell = look(traffic, judge_file, tmp_path / "anchored", anchors=anchors, by="version")
    assert fell.who == "systems"
    assert "new: down by" in monitor_finding(fell).detail
    kept = tmp_path / "anchored" / ANCHORS
    first = json.loads(kept.read_text().splitlines()[0])
    moved = {key: max(1.0, score - 0.3 - 0.01 * (k % 5)) for k, (key, score) in enumerate(first["scores"].items())}
    kept.write_text(json.dumps(first | {"scores": moved}) + "\n")
    judged = look(traffic, judge_file, tmp_path / "anchored", anchors=anchors, by="version")
    assert judged.who == "judge"
    assert "144 anchor items, evaluation 2" in monitor_finding(judged).detail
    old, new = judged.periods
    assert old.corrected is not None and old.corrected.value is not None
    assert new.corrected is None or new.corrected.value is None  # nobody labelled the new ones


def test_table_json_and_exit_codes(
    traffic: list[Path], judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["monitor", *map(str, traffic), "--judge-file", str(judge_file), "--out", str(tmp_path)]
    assert main([*command, "--by", "version", "--json"]) == 1
    body = json.loads(capsys.readouterr().out)
    assert [period["name"] for period in body["periods"]] == ["old", "new"]
    assert (body["alarm"], body["moved"]) == (True, "inconclusive")
    assert main([*command, "--by", "version"]) == 1
    table = capsys.readouterr().out
    for said in (body["finding"], body["detail"], body["next_step"]):
        assert said in " ".join(table.split())
    old = body["periods"][0]
    mean = old["corrected"]
    figures = f"{mean['value']:.2f} [{mean['interval'][0]:.2f}, {mean['interval'][1]:.2f}]"
    row = ["old", "280", "0", str(old["n_labelled"]), f"{old['judged']['value']:.2f}", *figures.split(), "baseline"]
    assert row in [line.split() for line in table.splitlines()]
    assert main(["monitor", *map(str, traffic[:6]), *command[-4:]]) == 0
    assert "No significant change in relevance since the baseline" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["monitor.json", "verdicts.jsonl"]
    direct = core.monitor(traffic[:6], judge_file, tmp_path)
    assert (direct.n_new, direct.alarm) == (0, False)


def test_hostile_names_cannot_drive_the_terminal(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": f"x{k}", "target": f"Text {k}.", "source": f"Source {k}.", "model": "v\x1b[2J\u202e"} for k in range(40)
    ]
    texts = write(tmp_path / "t.jsonl", rows)
    command = ["monitor", str(texts), "--judge-file", str(judge_file), "--out", str(tmp_path / "out")]
    assert main([*command, "--by", "version"]) == 0
    assert not set(capsys.readouterr().out) & {"\x1b", "\u202e"}


def test_what_cannot_be_watched(traffic: list[Path], judge_file: Path, tmp_path: Path) -> None:
    look(traffic[:1], judge_file, tmp_path)
    other = tmp_path / "other.yaml"
    other.write_text(judge_file.read_text() + "\n")
    with pytest.raises(JobError, match="verdicts from another judge file"):
        look(traffic[:1], other, tmp_path)
    (tmp_path / VERDICTS).write_text("no json\n")
    with pytest.raises(JobError, match="line 1 is damaged"):
        look(traffic[:1], judge_file, tmp_path)
    row = {"id": "a", "target": "Text.", "source": "Source.", "timestamp": "2026-11-01", f"human_{ASPECT}": 70}
    (tmp_path / "off.jsonl").write_text(json.dumps(row))
    with pytest.raises(GoldenError, match="labels are outside the judge's scale"):
        look([tmp_path / "off.jsonl"], judge_file, tmp_path / "out")
    (tmp_path / "bare.jsonl").write_text(json.dumps({"id": "a", "target": "Text.", "timestamp": "2026-11-01"}))
    with pytest.raises(GoldenError, match=r"^bare\.jsonl: All items lack the source"):
        look([tmp_path / "bare.jsonl"], judge_file, tmp_path / "bare")


def test_anchors_of_a_few_sources_rule_no_judge_out(
    traffic: list[Path], judge_file: Path, tmp_path: Path, repository: Path
) -> None:
    few = tmp_path / "few.jsonl"
    lines = (repository / "sample_data" / "summaries.jsonl").read_text().splitlines()
    few.write_text("\n".join(lines[:12]))  # two sources
    for days in (7, 10):
        seen = look(traffic[:days], judge_file, tmp_path / "out", anchors=few, by="version")
        kept = tmp_path / "out" / ANCHORS
        first = json.loads(kept.read_text().splitlines()[0])
        moved = {key: score + 0.01 * (k + 1) for k, (key, score) in enumerate(first["scores"].items())}
        kept.write_text(json.dumps(first | {"scores": moved}) + "\n")
    assert seen.look is not None
    assert seen.look.interval is None
    assert seen.who == "inconclusive"
    assert "anchor items" in monitor_finding(seen).next_step


def test_nothing_is_scored_for_what_cannot_be_watched(judge_file: Path, tmp_path: Path) -> None:
    (tmp_path / "timeless.jsonl").write_text(json.dumps({"id": "a", "target": "Text.", "source": "Source."}))
    with pytest.raises(UsageError, match="no readable time"):
        look([tmp_path / "timeless.jsonl"], judge_file, tmp_path / "out")
    assert not (tmp_path / "out" / VERDICTS).exists()


def test_columns_are_found_by_their_paths_in_logged_json(judge_file: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "trace": {"id": f"t{k}", "at": 1_795_000_000_000 + k, "model": "m1"},
            "request": json.dumps({"article": f"Article {k}."}),
            "response": {"choices": [{"message": {"content": f"Summary {k}." if k else " "}}]},
            "feedback": [{"value": 3}] if k == 1 else [],
        }
        for k in range(3)
    ]
    log = write(tmp_path / "log.jsonl", [*rows, rows[1]])
    paths = {
        "item_id": "trace.id",
        "time": "trace.at",
        "system_id": "trace.model",
        "source": "request.article",
        "target": "response.choices[0].message.content",
        f"human_{ASPECT}": "feedback[0].value",
    }
    monitored = look([log], judge_file, tmp_path / "out", mapping=paths)
    (period,) = monitored.periods
    assert (period.name, period.n, period.n_labelled, period.n_unread) == ("2026-11-18", 2, 1, 0)
    assert monitored.left_out == {"rows without text": 1, "rows with a repeated id": 1}
    assert monitored.n_new == 2
    with pytest.raises(UsageError, match=r"None of the files has a column 'trace\.when'"):
        look([log], judge_file, tmp_path / "more", mapping=paths | {"time": "trace.when"})
    with pytest.raises(GoldenError, match="Can't find the column with the texts to judge"):
        look([write(tmp_path / "odd.jsonl", [{"x": 1}])], judge_file, tmp_path / "bare")


def test_labels_that_come_later_join_their_text(tmp_path: Path) -> None:
    head = "id,text,model,timestamp,human_clarity\n"
    (tmp_path / "day.csv").write_text(f"{head}a,One,v1,2026-11-20,\nb,Two,v2,soon,good\n")
    (tmp_path / "late.csv").write_text(f"{head}a,One,v1,2026-11-20,3\n")
    items, times, labels, left_out = read_traffic([tmp_path / "day.csv", tmp_path / "late.csv"], "clarity", {}, {})
    assert [(item.item_id, item.system_id) for item in items] == [("a", "v1"), ("b", "v2")]
    assert [at is None for at in times] == [False, True]
    assert labels[0] == 3.0 and np.isnan(labels[1])
    assert left_out == {"rows with a repeated id": 1, "labels that aren't numbers": 1}
