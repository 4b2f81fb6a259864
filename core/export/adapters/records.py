"""What an adapter is, and what is lost on the way to other tools, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.export.adapters.facts import JudgeFacts
from core.export.adapters.literals import Constant, comment, constant

BODIES = Path(__file__).parent / "bodies"


@dataclass(frozen=True, slots=True)
class Adapter:
    """A judge as a file for another tool.

    `lost` says, a sentence each, what of the judge the file cannot hold; `kept` what it holds.  Both stand at the top
    of `text` too.
    """

    name: str
    title: str
    file_name: str
    media_type: str
    kept: tuple[str, ...]
    lost: tuple[str, ...]
    text: str


def no_model(facts: JudgeFacts) -> tuple[str, ...]:
    """What is lost of a judge that is no language model another tool can ask; nothing of any other."""
    if facts.is_llm:
        return ()
    return (
        f"The judge ({facts.document.judge.spec}) is no language model that this tool could ask: its features, weights "
        "and score map stay behind, and only its criteria go along. Name a model of your own.",
        "The alignment told here is that of the judge left behind. It says nothing about these criteria in the hands "
        "of another model: measure it before trusting the scores.",
    )


def no_room(facts: JudgeFacts) -> tuple[str, ...]:
    """What is lost of the fields that no other tool has a place for; only of those that the judge file holds."""
    judge, lost = facts.document.judge, []
    if judge.revision:
        lost.append(
            f"The revision of the model ({judge.revision}): whatever the endpoint serves under its name is asked."
        )
    if judge.limits:
        lost.append("The limits that were kept in the calibration (calls, cost, requests a minute): set your own.")
    if any(criteria.clauses for criteria in facts.document.criteria):
        lost.append("The weights of single clauses of the criteria: the model reads the criteria's text alone.")
    if facts.document.residuals:
        lost.append("The residuals for an interval around a single score: a score comes without one.")
    return tuple(lost)


def own_prompt(facts: JudgeFacts, tool: str) -> tuple[str, ...]:
    """What is lost where a tool puts its own prompt around the criteria."""
    lost = [
        f"Concord's scoring prompt and output form ({facts.sampling.prompt}): {tool} asks with its own. The alignment "
        "told here was measured with Concord's; measure it again."
    ]
    if facts.sampling.persona != "none":
        lost.append(f"The persona ({facts.sampling.persona}): there is no place for a system message.")
    return tuple(lost if facts.is_llm else ())


def key_words(facts: JudgeFacts) -> tuple[str, ...]:
    """A line of `head` on an endpoint that gets no key by itself; none where it may have it."""
    if facts.key_goes:
        return ()
    return (f"{facts.base_url} comes out of the judge file: it gets JUDGE_API_KEY, and never OPENAI_API_KEY, unless",
            "you name it yourself as JUDGE_BASE_URL.")  # fmt: skip


def joined_words(facts: JudgeFacts) -> tuple[str, ...]:
    """What a target keeps that can compute: the mean over criteria and the map to the human scale."""
    kept = [f"The mean over its {len(facts.criteria)} criteria."] if len(facts.criteria) > 1 else ["Its criteria."]
    if facts.fitted_map:
        kept.append("The map to the scale of the people.")
    return tuple(kept)


def asked_words(facts: JudgeFacts) -> tuple[str, ...]:
    """What a target keeps of how a language model is asked; nothing of a judge that is none."""
    if not facts.is_llm:
        return ()
    n = facts.sampling.samples
    replies = f"the mean of {n} replies" if n > 1 else "one reply"
    return (f"Model, endpoint and sampling: {replies}, temperature {facts.sampling.temperature:g}.",)


def head(facts: JudgeFacts, tool: str, use: Sequence[str], lost: Sequence[str]) -> list[str]:
    """The lines at the top of every file: the first two are ours alone, so that no name can change how it is read."""
    return [
        f"A calibrated judge, written by Concord for {tool}.",
        "",
        *facts.lines,
        "",
        "How to use it:",
        *(f"  {line}" for line in use),
        "",
        "What this file cannot hold:" if lost else "This file holds the whole judge.",
        *(f"  - {line}" for line in lost),
    ]


def python_file(opening: Sequence[str], imports: str, constants: dict[str, Constant], *bodies: str) -> str:
    """A Python file: comments, imports, constants as literals, and bodies that are the same for every judge."""
    return "\n".join(
        [
            comment(opening),
            "",
            imports.strip(),
            "",
            *(constant(name, value) for name, value in constants.items()),
            *(f"{(BODIES / f'{body}.txt').read_text(encoding='utf-8').rstrip()}\n" for body in bodies),
        ]
    )


def python_adapter(
    facts: JudgeFacts,
    name: str,
    title: str,
    *,
    tool: str,
    use: Sequence[str],
    imports: str,
    constants: dict[str, Constant],
    kept: Sequence[str],
    lost: Sequence[str],
) -> Adapter:
    """A judge as Python for `tool`: the body `NAME.txt` behind the joining and the constants that all of them share."""
    opening = head(facts, tool, use, lost)
    text = python_file(opening, imports, shared_constants(facts) | constants, "join", name)
    return Adapter(
        name.split("_", maxsplit=1)[0], title, "concord_judge.py", "text/x-python", tuple(kept), tuple(lost), text
    )


def shared_constants(facts: JudgeFacts) -> dict[str, Constant]:
    """Constants of every generated Python file; the map only where the scores are those it was fitted on."""
    how, score_map = facts.sampling, facts.fitted_map
    return {
        "ASPECT": facts.task.aspect,
        "SCALE": (float(facts.task.scale.low), float(facts.task.scale.high)),
        "MODEL": facts.model,
        "BASE_URL": facts.base_url,
        "KEY_GOES": facts.key_goes,
        "SAMPLING": {
            "samples": how.samples,
            "temperature": float(how.temperature),
            "top_p": float(how.top_p),
            "max_tokens": how.max_tokens,
            "weighted": how.weighted,
            "reasons_first": how.output in ("analyze_rate", "mix"),
        },
        "ISOTONIC": None
        if score_map is None
        else {"x": score_map.x, "y": score_map.y, "low": score_map.low, "high": score_map.high},
    }
