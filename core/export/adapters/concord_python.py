"""The judge from Python, by Concord itself: a snippet and a notebook beside the judge file.  Nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from core.export.adapters.facts import JudgeFacts
from core.export.adapters.literals import comment, constant, one_line
from core.export.adapters.records import BODIES, Adapter, head

_USE = (
    "Put judge.yaml beside this file and run it where Concord is installed (its folder on the Python path).",
    "A judge behind an endpoint reads its key from OPENAI_API_KEY.",
)
_NEEDS = ("Concord itself has to be installed, and judge.yaml has to be at hand: this file calls it.",)
_PARTS = ("source", "context")


def python_snippet(facts: JudgeFacts) -> Adapter:
    """A script that scores a few items with `core.load_judge`."""
    text = "\n\n".join([comment(head(facts, "Python", _USE, _NEEDS)), *_cells(facts)]) + "\n"
    return Adapter("python", "Python snippet", "score_with_judge.py", "text/x-python", _KEPT, _NEEDS, text)


def notebook(facts: JudgeFacts) -> Adapter:
    """The snippet as a notebook (nbformat 4.5); what is told about the judge stands in an indented block, as text."""
    told = "\n".join(f"    {one_line(line)}" for line in head(facts, "a notebook", _USE, _NEEDS))
    cells = [_cell("markdown", "about", f"# A calibrated judge\n\n{told}")]
    cells += [_cell("code", f"code-{number}", source) for number, source in enumerate(_cells(facts), 1)]
    body = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(body, ensure_ascii=False, indent=1) + "\n"
    return Adapter("notebook", "Notebook", "score_with_judge.ipynb", "application/x-ipynb+json", _KEPT, _NEEDS, text)


_KEPT = ("The whole judge: criteria, prompts, sampling, reader, mean and map, as they were calibrated.",)


def _cells(facts: JudgeFacts) -> list[str]:
    item = {"item_id": "1", "target": "The text to rate."}
    item |= {part: f"Its {part}." for part in _PARTS if part in facts.parts}
    references = ("A reference.",) if "references" in facts.parts else ()
    constants = [
        constant("CRITERIA", tuple(criteria.id for criteria in facts.document.criteria)),
        constant("ITEMS", (item | ({"references": references} if references else {}),)),
    ]
    opening, *rest = (BODIES / "concord_python.txt").read_text(encoding="utf-8").strip().split("\n\n\n")
    return [opening, "\n".join(constants), *rest]


def _cell(kind: str, cell_id: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": cell_id,
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}
