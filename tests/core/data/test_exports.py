"""Exports of the tools that log systems in use, each as the tool writes it: texts, times, people's labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.data.exports import (
    BY_MACHINE,
    NO_NUMBER,
    NO_TEXT,
    NOT_ROOT,
    OF_STEPS,
    OTHER_LABELS,
    REPEATED,
    read_traffic,
    words_in,
)
from core.errors import GoldenError

Rows = Sequence[Mapping[str, Any]]
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def lines(place: Path, rows: Rows) -> Path:
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return place


def test_langfuse_scores_join_the_observations_of_their_traces(tmp_path: Path) -> None:
    texts = [
        {"id": "o1", "trace_id": "t1", "parent_observation_id": "", "type": "SPAN", "provided_model_name": "m1"}
        | {"input": '{"messages": [{"role": "user", "content": "What?"}]}', "output": '"This."'}
        | {"start_time": "2026-11-20 12:00:00.000000"},
        {"id": "o2", "trace_id": "t1", "parent_observation_id": "o1", "input": "step", "output": "step"},
        {"id": "o3", "trace_id": "t2", "parent_observation_id": "", "input": "Who?", "output": ""},
    ]
    given = {"trace_id": "t1", "source": "ANNOTATION", "string_value": ""}
    scores = [
        given | {"name": "Clarity", "value": 4, "data_type": "NUMERIC"},
        given | {"name": "clarity", "value": 2, "data_type": "CATEGORICAL", "string_value": "5"},
        given | {"name": "clarity", "value": 1, "data_type": "CATEGORICAL", "string_value": "good"},
        given | {"name": "clarity", "value": 0, "data_type": "TEXT", "string_value": "fine"},
        given | {"name": "clarity", "value": 1, "data_type": "NUMERIC", "source": "EVAL"},
        given | {"name": "tone", "value": 1, "data_type": "NUMERIC"},
    ]
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in scores] for name in scores[0]}
    columns["value"] = [float(value) for value in columns["value"]]
    pq.write_table(pa.table(columns), tmp_path / "scores.parquet")
    traffic = read_traffic([lines(tmp_path / "obs.jsonl", texts), tmp_path / "scores.parquet"], "clarity")
    assert [
        (row.item.item_id, row.item.source, row.item.target, row.item.system_id, row.at) for row in traffic.rows
    ] == [("t1", "What?", '"This."', "m1", NOON)]
    assert traffic.labels == {"t1": 4.5}  # the mean of 4 and the category named 5; never a category's place, or a 0
    assert traffic.left_out == {NOT_ROOT: 1, NO_TEXT: 1, NO_NUMBER: 2, BY_MACHINE: 1, OTHER_LABELS: 1}
    assert traffic.tools == {"obs.jsonl": "Langfuse", "scores.parquet": "Langfuse scores"}


def test_what_people_say_of_a_step_is_no_label_of_its_trace(tmp_path: Path) -> None:
    texts = [
        {"id": "root", "trace_id": "t1", "parent_observation_id": "", "input": "What?", "output": "This."},
        {"id": "step", "trace_id": "t1", "parent_observation_id": "root", "input": "Think.", "output": "Hm."},
    ]
    given = {"trace_id": "t1", "name": "clarity", "source": "ANNOTATION", "data_type": "NUMERIC"}
    scores = [given | {"observation_id": on, "value": n} for on, n in (("step", 1), ("root", 4), ("", 5), (None, 3))]
    files = [lines(tmp_path / "scores.jsonl", scores), lines(tmp_path / "obs.jsonl", texts)]  # labels come first
    for order in (files, files[::-1]):
        traffic = read_traffic(order, "clarity")
        assert traffic.labels == {"t1": 4.0}  # (4 + 5 + 3) / 3
        assert traffic.left_out == {NOT_ROOT: 1, OF_STEPS: 1}
    people = {"assessment_name": "clarity", "source": {"source_type": "HUMAN"}}
    spans = [{"span_id": "a", "parent_span_id": None}, {"span_id": "b", "parent_span_id": "a"}]
    row = {"trace_id": "m1", "request": "Why?", "response": "So.", "spans": spans}
    row["assessments"] = [
        people | {"span_id": on, "feedback": {"value": n}} for on, n in (("a", 4), ("b", 1), (None, 2))
    ]
    traffic = read_traffic([lines(tmp_path / "traces.jsonl", [row])], "clarity")
    assert (traffic.labels, traffic.left_out) == ({"m1": 3.0}, {OF_STEPS: 1})


def test_langfuse_in_camel_case(tmp_path: Path) -> None:
    trace = {"id": "t1", "projectId": "p", "timestamp": "2026-11-20T12:00:00Z", "input": "Why?", "output": "So."}
    score = {"traceId": "t1", "name": "clarity", "value": 1, "source": "ANNOTATION", "dataType": "BOOLEAN"}
    files = [lines(tmp_path / "traces.jsonl", [trace]), lines(tmp_path / "scores.jsonl", [score])]
    traffic = read_traffic(files, "clarity")
    assert (traffic.rows[0].item.target, traffic.rows[0].at, traffic.labels) == ("So.", NOON, {"t1": 1.0})


def test_phoenix_spans_and_annotations(tmp_path: Path) -> None:
    span = {"context.span_id": "s1", "parent_id": None, "start_time": "2026-11-20T13:00:00+01:00"}
    span |= {"attributes.input.value": "Ask", "attributes.output.value": "Said", "attributes.llm.model_name": "m2"}
    marks = [
        {"span_id": "s1", "annotation_name": "clarity", "annotator_kind": kind, "result.score": score}
        | {"result.label": label}
        for kind, score, label in (
            ("HUMAN", 2.0, "poor"),
            ("HUMAN", None, "3"),
            ("LLM", 5.0, ""),
            ("HUMAN", None, "ok"),
        )
    ]
    files = [lines(tmp_path / "spans.jsonl", [span]), lines(tmp_path / "marks.jsonl", marks)]
    traffic = read_traffic(files, "clarity")
    row = traffic.rows[0]
    assert (row.item.source, row.item.target, row.item.system_id, row.at) == ("Ask", "Said", "m2", NOON)
    assert traffic.labels == {"s1": 2.5}
    assert traffic.left_out == {BY_MACHINE: 1, NO_NUMBER: 1}


@pytest.mark.parametrize("old", [False, True])
def test_mlflow_traces_of_both_versions(tmp_path: Path, *, old: bool) -> None:
    trace, when = ("request_id", "timestamp_ms") if old else ("trace_id", "request_time")
    people = {"source": {"source_type": "HUMAN", "source_id": "ann"}, "feedback": {"value": 4}}
    row = {
        trace: "t1",
        when: int(NOON.timestamp() * 1000),
        "request": '{"question": "Why?"}',
        "response": {"choices": [{"message": {"role": "assistant", "content": "Because."}}]},
        "assessments": [
            {"name" if old else "assessment_name": "clarity"} | people,
            {"assessment_name": "clarity", "source": {"source_type": "LLM_JUDGE"}, "feedback": {"value": 1}},
            {"assessment_name": "clarity", "source": {"source_type": "HUMAN"}, "expectation": {"value": 1}},
        ],
    }
    traffic = read_traffic([lines(tmp_path / "traces.jsonl", [row])], "clarity")
    first = traffic.rows[0]
    assert (first.item.source, first.item.target, first.at) == ("Why?", "Because.", NOON)
    assert (traffic.labels, traffic.left_out) == ({"t1": 4.0}, {BY_MACHINE: 1})


def test_openai_evals_output_items(tmp_path: Path) -> None:
    row = {
        "object": "eval.run.output_item",
        "datasource_item": {"input": "Sum up.", "expected": "x"},
        "datasource_item_id": 7,
        "created_at": int(NOON.timestamp()),
        "results": [{"name": "clarity", "score": 1.0}],
        "sample": {"input": [], "output": [{"role": "assistant", "content": "In sum."}], "model": "gpt"},
    }
    (tmp_path / "items.json").write_text(json.dumps({"object": "list", "data": [row]}))
    traffic = read_traffic([tmp_path / "items.json"], "clarity")
    first = traffic.rows[0]
    assert (first.item.item_id, first.item.source, first.item.target, first.at) == ("7", "Sum up.", "In sum.", NOON)
    assert not traffic.labels  # a grader is no person


def test_promptfoo_results_and_a_persons_grade(tmp_path: Path) -> None:
    result = {
        "id": "r1",
        "prompt": {"raw": "Write."},
        "provider": {"id": "openai:m"},
        "response": {"output": "Written."},
        "gradingResult": {
            "componentResults": [
                {"assertion": {"type": "human"}, "score": 1},
                {"assertion": {"type": "llm-rubric"}, "score": 0},
            ]
        },
    }
    body = {"results": {"timestamp": "2026-11-20T12:00:00Z", "results": [result]}}
    (tmp_path / "out.json").write_text(json.dumps(body))
    traffic = read_traffic([tmp_path / "out.json"], "clarity")
    row = traffic.rows[0]
    assert (row.item.source, row.item.target, row.item.system_id, row.at) == ("Write.", "Written.", "openai:m", NOON)
    assert traffic.labels == {"r1": 1.0}


def test_an_inspect_log(tmp_path: Path) -> None:
    sample = {"id": 1, "input": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]}
    output = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
    body = {"eval": {"model": "m", "created": "2026-11-20T12:00:00+00:00"}}
    body["samples"] = [sample | {"epoch": k, "output": output} for k in (1, 2)]  # type: ignore[assignment]
    (tmp_path / "log.json").write_text(json.dumps(body))
    rows = read_traffic([tmp_path / "log.json"], "clarity").rows
    assert [row.item.item_id for row in rows] == ["1", "1#2"]
    assert (rows[0].item.source, rows[0].item.target, rows[0].at) == ("system: Be short.\nuser: Hi", "Hello.", NOON)


def test_a_plain_table_with_times_and_labels(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("id,text,model,timestamp,human_clarity\na,One,v1,2026-11-20,3\nb,Two,v2,soon,\n")
    traffic = read_traffic([tmp_path / "day.csv", tmp_path / "day.csv"], "clarity")
    assert [(row.item.item_id, row.item.system_id, row.at is None) for row in traffic.rows] == [
        ("a", "v1", False),
        ("b", "v2", True),
    ]
    assert traffic.labels["a"] == 3.0
    assert traffic.left_out == {REPEATED: 2}


def test_files_without_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="Name the column of the texts"):
        read_traffic([lines(tmp_path / "odd.jsonl", [{"x": 1, "y": 2}])], "clarity")
    only = {"trace_id": "t", "name": "clarity", "value": 1, "source": "EVAL"}
    with pytest.raises(GoldenError, match="1 labels by judges"):
        read_traffic([lines(tmp_path / "scores.jsonl", [only])], "clarity")


def test_words_of_hostile_shapes() -> None:
    assert words_in('{"a": ') == '{"a": '
    assert words_in([]) == ""
    assert words_in({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}) == "Hi"
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    assert isinstance(words_in(deep), str)
