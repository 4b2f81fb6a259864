"""The files of judges: their schemas, documented to the last field, faults told with path, and room for more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

import core
from core.errors import JudgeError, UsageError
from core.export import read_card
from core.export.judge_reading import FORMATS, VERSION, check_card, judge_schema
from core.records import Item
from core.stats.expected_error import FEATURES

Card = dict[str, Any]


@pytest.mark.parametrize("kind", ["judge", "fusion", "repeval"])
def test_the_schema_is_one_of_this_version(kind: Any) -> None:
    schema = judge_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:concord:{kind}:{VERSION}"
    assert schema["properties"]["format"]["const"] == FORMATS[kind]
    assert schema["properties"]["version"]["const"] == VERSION
    assert core.judge_schema(kind) == schema


def test_there_is_no_other_schema() -> None:
    with pytest.raises(UsageError, match="not of 'person'"):
        judge_schema("person")  # type: ignore[arg-type]


def fields(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every property that the schema names."""
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield f"{path}.{name}", inner
        for name, inner in schema.items():
            yield from fields(inner, f"{path}.{name}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from fields(inner, path)


@pytest.mark.parametrize("kind", ["judge", "fusion", "repeval"])
def test_every_field_is_described(kind: Any) -> None:
    schema = judge_schema(kind)
    silent = []
    for path, inner in fields(schema):
        told = inner.get("description") or schema["$defs"].get(inner.get("$ref", "").split("/")[-1], {}).get(
            "description"
        )
        beside = [
            schema["$defs"][element["$ref"].split("/")[-1]]
            for element in inner.get("anyOf", inner.get("oneOf", ()))
            if "$ref" in element
        ]
        if not told and not any("description" in one for one in beside):
            silent.append(path)
    assert silent == []


def test_real_cards_are_valid(offline_card: Card, scripted_card: Card, fused_card: Card) -> None:
    for card, kind in ((offline_card, "judge"), (scripted_card, "judge"), (fused_card, "fusion")):
        jsonschema.validate(card, judge_schema(kind))  # type: ignore[arg-type]


FAULTS = [
    (("task", "scale", "low"), "one", 'task.scale.low must be a number; "one" came.'),
    (("task", "kind"), "poem", "task.kind must be one of single, source_target"),
    (("task",), {"aspect": "x"}, "task lacks kind, scale."),
    (("task", "scales"), {}, 'task may hold aspect, definition, kind, needs, scale; "scales" came.'),
    (("task", "scale", "step"), 0, "task.scale.step must be above 0; 0 came."),
    (("criteria",), [], "criteria must be a list of at least 1; one of 0 came."),
    (("criteria", 0, "text"), None, "criteria[0].text must be a text; null came."),
    (("criteria", 1), "be kind", 'criteria[1] must be an object; "be kind" came.'),
    (("isotonic",), [1, 2], "isotonic must be an object or null; [1, 2] came."),
    (("isotonic", "x", 1), True, "isotonic.x[1] must be a number; true came."),
    (("alignment", "held_out", "n"), -3, "alignment.held_out.n must be at least 0; -3 came."),
    (("alignment", "held_out", "value"), 7, "alignment.held_out.value must be at most 1"),
    (("alignment", "held_out", "statistic"), "best", "must be one of pearson, spearman, kendall"),
    (("ceiling",), {"value": 1}, "ceiling lacks statistic, level, n."),
    (("digest",), "sha1:0", "digest must be a text of the form ^sha256"),
    (("join",), "max", 'join must be "mean"; "max" came.'),
    (("held_out_opened",), 1.5, "held_out_opened must be a whole number or null; 1.5 came."),
    (("approved",), "yes", 'approved must be true or false; "yes" came.'),
    (("approvals", 0, "state"), "signed", "approvals[0].state must be one of draft, proposed, approved, retired"),
    (("warnings",), "none", 'warnings must be a list; "none" came.'),
    (("judge", "spec"), "", "judge.spec must be a text of at least 1 characters"),
    (("judge", "scaling", "n_items"), -1, "judge.scaling.n_items must be at least 0"),
    (("task", "needs"), ["source", "source"], "task.needs must be a list without repetitions"),
    (("kept",), 1, "The file may hold alignment, approvals, approved, calls, ceiling"),
    (("criteria", 0, "weight"), 1, 'criteria[0] may hold clauses, id, provenance, text; "weight" came.'),
    (
        ("alignment", "held_out", "interval"),
        [0.1],
        "held_out.interval must be a list of at least 2; one of 1",
    ),
    (("settings", "seed"), [1], "settings.seed must be a text, a number, true, false or null; [1] came."),
    (
        ("judge", "scaling", "features", "log_words"),
        [1, 0],
        "features.log_words[1] must be at least 1e-09",
    ),
]


@pytest.mark.parametrize(("path", "value", "words"), FAULTS, ids=[".".join(map(str, fault[0])) for fault in FAULTS])
def test_a_fault_is_told_with_its_place(offline_card: Card, path: tuple[Any, ...], value: Any, words: str) -> None:
    offline_card["approvals"] = [{"criteria": "c", "state": "draft"}]
    holder: Any = offline_card
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    with pytest.raises(JudgeError) as told:
        check_card(offline_card, "judge", "mine.yaml")
    assert str(told.value).startswith("mine.yaml: ")
    assert words in str(told.value)
    assert "export the judge again" in str(told.value)


@pytest.mark.parametrize("prompt", ["../../secret.v1", "/etc/passwd", "score.v1+", "Score.v1", "a.v1/b.v1"])
def test_a_prompt_is_a_name_and_no_path(scripted_card: Card, prompt: str) -> None:
    scripted_card["judge"]["sampling"]["prompt"] = prompt
    with pytest.raises(JudgeError, match=r"judge\.sampling\.prompt must be a text of the form"):
        check_card(scripted_card, "judge", "mine.yaml")


def test_many_faults_are_told_in_short(offline_card: Card) -> None:
    offline_card["judge"]["scaling"]["features"] = dict.fromkeys(map(str, range(500)), "x" * 500)
    with pytest.raises(JudgeError) as told:
        check_card(offline_card, "judge", "mine.yaml")
    assert "more)" in str(told.value)
    assert len(str(told.value)) < 1000


# ── what a file has room for ─────────────────────────────────────────────────────────────────────────────────

BY_ANN = {"by": "Ann", "at": "2026-11-22T10:00:00+00:00", "state": "approved", "reason": "held on new texts"}
ROOM: Card = {
    "judge_version": {"id": "v7", "number": 3, "state": "current", "parent": "v6", "author": "Bo", "note": "shorter"},
    "residuals": {"on": "cross-fitted", "values": [-1.5, -0.25, 0.0, 0.75]},
    "prompt_texts": {"score": f"sha256:{'0' * 64}"},
    "intervals": {
        **{"n": 40, "n_sources": 12, "reason": None, "on_points": False},
        "expected_error": {
            **{"base": 0.5, "factor": 1.0, "least": 0.1, "most": 2.0},
            "features": {name: [0.0, 1.0, 0.25] for name in FEATURES},
        },
        **{"quantiles": [[0.9, 1.75], [0.95, None]], "kept": [[0.5, 0.5, 0.25, 0.125], [1.0, 2.0, 0.5, 0.5]]},
    },
}
LIMITS = {"calls": 900, "cost": 2.5, "requests_per_minute": 60, "concurrent": 8, "timeout_seconds": 30.0}
CLAUSES = [{"text": "It is clear.", "weight": 0.75}, {"text": "It is short.", "weight": 0.25}]


def with_room(card: Card) -> Card:
    """`card` with every field that is written only where it is known."""
    full = card | ROOM | {"judge_version": ROOM["judge_version"] | {"approvals": [BY_ANN]}}
    full["judge"] = card["judge"] | {"revision": "2026-10-01", "limits": LIMITS}
    full["criteria"] = [card["criteria"][0] | {"clauses": CLAUSES}, *card["criteria"][1:]]
    return full


def test_what_there_is_room_for_is_read_back_and_carried(scripted_card: Card, write_card: Any) -> None:
    full = with_room(scripted_card)
    jsonschema.validate(full, judge_schema())
    path = write_card(full)
    read = read_card(path)
    assert {name: read[name] for name in full if name != "digest"} == {k: v for k, v in full.items() if k != "digest"}
    judge = core.load_judge(path)
    assert judge.marks == ()
    assert judge.card["residuals"] == ROOM["residuals"]
    (scored,) = judge.score([Item("a", "A text.", source="A source.")])
    (plain,) = core.load_judge(write_card(scripted_card)).score([Item("a", "A text.", source="A source.")])
    assert scored == plain  # told, and nothing of it changes a score


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("judge_version", "number"), 0, "judge_version.number must be at least 1; 0 came."),
        (("judge_version", "state"), "best", "judge_version.state must be one of draft, proposed, approved, current"),
        (("judge_version", "approvals", 0, "at"), None, "judge_version.approvals[0].at must be a text; null came."),
        (("residuals", "values"), ["a"], 'residuals.values[0] must be a number; "a" came.'),
        (("intervals", "quantiles"), [[0.9]], "intervals.quantiles[0] must be a list of 2; one of 1 came."),
        (("intervals", "quantiles"), [[2, 1]], "intervals.quantiles[0][0] must be at most 1; 2 came."),
        (("intervals", "expected_error", "features"), {}, "intervals: The model of the error needs the features score"),
        (("intervals", "expected_error", "least"), 0, "intervals.expected_error.least must be above 0; 0 came."),
        (("judge", "limits", "calls"), -1, "judge.limits.calls must be at least 0; -1 came."),
        (("criteria", 0, "clauses", 1, "weight"), None, "criteria[0].clauses[1].weight must be a number; null came."),
        (("prompt_texts", "score"), "abc", "prompt_texts.score must be a text of the form ^sha256"),
    ],
)
def test_what_there_is_room_for_is_checked(scripted_card: Card, path: tuple[Any, ...], value: Any, words: str) -> None:
    full = copy.deepcopy(with_room(scripted_card))
    holder: Any = full
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    with pytest.raises(JudgeError) as told:
        check_card(full, "judge", "mine.yaml")
    assert words in str(told.value)
