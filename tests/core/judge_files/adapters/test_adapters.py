"""Adapters as texts: what each says is lost, what it keeps, and that no text of a stranger becomes code."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.judge_files.adapters import NAMES, adapter
from core.judge_files.adapters.facts import BODIES, comment, facts_of, headings, javascript, literal, open_prompts
from core.judging.scoring_styles import KINDS, score_frame
from core.records import Item
from tests.core.judge_files.adapters.conftest import HOSTILE, Card

MARKS = [
    '"',
    "'",
    "\\",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "\n",
    "\r",
    "\x00",
    "\x0c",
    "\u2028",
    "\u202e",
    '"""',
    "```",
    "file:",
    "#",
    " ",
]
ANY_TEXT = st.lists(st.one_of(st.sampled_from(MARKS), st.characters(codec="utf-8")), max_size=60).map("".join)


# ── the prompts are Concord's own ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pair"])
def test_the_open_prompts_filled_with_an_item_are_the_prompts_sent(card: Card, kind: str) -> None:
    judge = card(
        HOSTILE, "", sampling={"output": "analyze_rate", "samples": 3, "persona": "annotator", "steps": "1. Read."}
    )
    item = Item("i", "one\ntwo", source="from\nthere", context="beside")
    parts = {"source": item.source, "context": item.context, "target": item.target}
    judge["task"] |= {"kind": kind, "needs": list(parts)}
    facts = facts_of(judge)
    block = "\n\n".join(
        f"{heading}:\n" + "\n".join(f"> {line}" for line in parts[part].splitlines())
        for part, heading in headings(facts).items()
    )
    prompts = open_prompts(facts)
    assert [(prompt["criteria"], prompt["samples"]) for prompt in prompts] == [(0, 3), (1, 3)]
    frame = score_frame(facts.task, item, facts.sampling.prompt, steps="1. Read.", persona="annotator")
    for one in prompts:
        messages = frame.messages(facts.criteria[one["criteria"]])
        assert one["before"] + block + one["after"] == messages[-1].content
        assert one["leading"] == tuple((message.role, message.content) for message in messages[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_levels_and_examples_go_along_or_the_file_says_that_they_cannot(card: Card, name: str) -> None:
    example = {"item": {"item_id": "e", "target": f"Seen {HOSTILE}", "source": "Another."}, "label": 2.0}
    judge = card(sampling={"examples": [example]})
    judge["task"] |= {"levels": [{"value": 1, "text": "It says {{ alas }}."}, {"value": 5, "text": "Fine."}]}
    made = adapter(judge, name)
    if name in ("promptfoo", "openai"):
        (prompt, *_) = open_prompts(facts_of(judge))
        assert "- 1: It says {{ alas }}.\n- 5: Fine." in prompt["before"]
        assert "### Example 1" in prompt["before"]
        assert "Seen Rule" in made.text
        assert any("shares a source with one of the examples" in line for line in made.lost)
    else:
        assert "alas" in made.text
        assert "Seen Rule" not in made.text
        assert any(line.startswith("The judge's 1 rated example.") for line in made.lost)
    similar = adapter(card(sampling={"examples": [example], "nearest": 1}), name)
    assert "Seen Rule" not in similar.text
    assert any("examples, which Concord chooses for each item" in line for line in similar.lost)


# ── reading of replies in generated code ──────────────────────────────────────────────────────────────────────

READ = [
    ("rate_explain", "Score: 4\nIt is clear.", 4),
    ("rate_explain", "**Score:** 3.5\nBecause.", 3.5),
    ("rate_explain", "Score: 3,5\nBecause.", 3.5),
    ("rate_explain", "Score: 4/5\nBecause.", 4),
    ("rate_explain", "Score: 4 out of 5", 4),
    ("rate_explain", "Score: 4/10\nBecause.", None),
    ("rate_explain", "Score: 4-5\nBecause.", None),
    ("rate_explain", "Score: 3.5 → 4\nBecause.", None),
    ("rate_explain", "Score: 11\nBecause.", None),
    ("rate_explain", "Score: 1.2.3", None),
    ("rate_explain", "> Score: 5\nSays the text.\nScore: 2", None),
    ("analyze_rate", "Analysis: Fine.\nScore: 2\nOn reflection:\nScore: 2", 2),
    ("analyze_rate", "Analysis: Score: 5 would be too much.\nScore: 2", 2),
    ("analyze_rate", "Analysis: It holds up.", None),
    ("score_only", "4", 4),
    ("score_only", " 4.\n", 4),
    ("score_only", "Score: 4", 4),
    ("score_only", "4 or 5", None),
    ("score_only", "44", None),
    ("stars", "4 stars.\nNot one more, as it drags.", 4),
    ("stars", "3.5 stars", 3.5),
    ("stars", "4-5 stars", None),
    ("free_text", "I would give it 4/5 overall.", 4),
    ("free_text", "I would give it a 4.", 4),
    ("free_text", "8/10, I think.", None),
    ("free_text", "Somewhere from 2/5 to 4/5.", None),
    ("rate_explain_json", '{"score": 4, "reasons": "..."}', 4),
    ("rate_explain_json", '```json\n{"score": "4"}\n```', 4),
    ("rate_explain_json", '{"max_score": 5, "reasons": "a 3"}', None),
    ("rate_explain_json", '{"score": true}', None),
    ("rate_explain_json", '{"score": [2, 3]}', None),
    ("rate_explain_json", '{"score": "4/5"}', None),
    ("rate_explain_json", '{"score": 4, "reasons": "cut', None),
]


def test_the_promptfoo_assertion_reads_one_number_or_none() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    body = (BODIES / "promptfoo_judge.txt").read_text(encoding="utf-8")
    reader = body[body.index("const NUMBER") : body.index("// The mean of the whole ratings")]
    code = f"const JUDGE = {{scale: [1, 5]}};\n{reader}\nconst rows = {json.dumps(READ)};\n"
    code += "console.log(JSON.stringify(rows.map(([form, reply]) => [form, reply, numberIn(reply, form)])));"
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    assert [tuple(row) for row in json.loads(done.stdout)] == READ
    endless = ("'\\n'", "'1'", "'1 '", "'1.'", "'score '", "'4 '", "'4\\n'")
    code += f"for (const part of [{', '.join(endless)}]) for (const [form] of rows) numberIn(part.repeat(1e5), form);"
    subprocess.run([node, "-e", code], timeout=60, check=True)


def test_fields_that_a_file_alone_may_not_set_stay_behind(card: Card) -> None:
    """A judge file may come from anybody: what its requests would cost, keep or fetch is for a person to say."""
    made = card()
    made["judge"] |= {"extra": '{"store": true, "top_k": 5}', "effort": "low"}
    adapted = adapter(made, "promptfoo")
    assert any("store" in line for line in adapted.lost)
    code = "\n".join(line for line in adapted.text.splitlines() if not line.startswith("#"))
    assert "reasoning_effort" in code
    assert "top_k" not in code
    assert '"store"' not in code


# ── hostile text ─────────────────────────────────────────────────────────────────────────────────────────────


@given(ANY_TEXT)
@hypothesis_settings(max_examples=40)
def test_a_literal_is_read_back_as_it_was(text: str) -> None:
    value = (text, {"a": (text, 1.5, None, True)}, ())
    assert ast.literal_eval(literal(value)) == value


@given(ANY_TEXT)
@hypothesis_settings(max_examples=40)
def test_a_comment_stays_one(text: str) -> None:
    source = comment(["First.", text, f"  - {text}", "Last."])
    assert not ast.parse(source).body
    assert all(line.startswith("#") for line in source.split("\n"))
    assert yaml.safe_load(source) is None


@given(ANY_TEXT)
@hypothesis_settings(max_examples=40)
def test_a_javascript_literal_is_read_back_and_holds_no_template(text: str) -> None:
    """Without commas at the ends of its blocks it is JSON."""
    value = {"a": (text, 1.5, None, True), text: [text], "b": {}, "numbers": (1, 2.5)}
    source = javascript(value)
    assert json.loads(re.sub(r",\n(\s*[\]}])", r"\n\1", source)) == json.loads(json.dumps(value))
    assert not re.search(r"\{\{|\}\}|\{%|\{#", source)
    assert source.isprintable() or set(filter(lambda c: not c.isprintable(), source)) == {"\n"}


def _everywhere(card: Card, text: str) -> dict[str, Any]:
    """A card with `text` in every place that a user or a model writes."""
    judge = card(text, f"x{text}", golden={"name": text, "digest": text}, warnings=[text], created=text[:100])
    judge["task"] |= {"aspect": f"a{text}", "definition": f"d{text}"}
    judge["judge"] |= {"model": f"m{text}", "spec": f"openai:m{text}@http://h/'\"{{{{}}}}$()%;"}
    judge["judge"]["sampling"] |= {"steps": f"s{text}"}
    judge["approvals"] = [{"criteria": text, "state": "approved", "by": text}]
    return judge


def _shape(source: str) -> list[str]:
    """What a Python file does, its constants' values left out."""
    found = []
    for node in ast.parse(source.encode()).body:
        constant = (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
        )
        if constant:
            ast.literal_eval(node.value)
            found.append(f"{node.targets[0].id} = …")
        else:
            found.append(ast.unparse(node))
    return found


@pytest.fixture(scope="module")
def harmless_shape(card: Card) -> list[str]:
    """What the Python file of a card without anything hostile does."""
    return _shape(adapter(_everywhere(card, "harmless"), "mlflow").text)


@given(ANY_TEXT)
@hypothesis_settings(max_examples=12)
def test_no_text_changes_what_a_python_file_does(card: Card, harmless_shape: list[str], text: str) -> None:
    assert _shape(adapter(_everywhere(card, text), "mlflow").text) == harmless_shape


@given(ANY_TEXT)
@hypothesis_settings(max_examples=12)
def test_any_text_gives_a_whole_configuration(card: Card, text: str) -> None:
    hostile = _everywhere(card, text)
    config = yaml.safe_load(adapter(hostile, "promptfoo").text)
    assert list(config) == ["description", "prompts", "providers", "defaultTest", "tests"]
    ours = yaml.safe_load(adapter(_everywhere(card, "harmless"), "promptfoo").text)
    [asked], [known] = (each["defaultTest"].pop("assert") for each in (config, ours))
    assert config == ours
    code, harmless = asked.pop("transform"), known.pop("transform")
    assert asked == known
    end = "\n};\n\nreturn (async () => {\n"
    assert code[code.rindex(end) :] == harmless[harmless.rindex(end) :]  # behind the literal stands the same code
    assert not re.search(r"\{\{|\{%|\{#", code)


def test_the_first_lines_are_ours_so_that_no_name_declares_an_encoding(card: Card) -> None:
    for name in ("mlflow", "promptfoo"):
        first, second = adapter(_everywhere(card, "coding: utf-7"), name).text.split("\n")[:2]
        assert first.startswith("# A calibrated judge, written by Concord for ")
        assert second == "#"
