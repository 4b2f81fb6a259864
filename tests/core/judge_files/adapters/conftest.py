"""Judge cards to adapt, an endpoint that answers every tool, and the environment that the tools run in."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from core.calibration.calibration_records import WorkDone
from core.data.split import KnownTexts
from core.judge_files.adapters import adapter
from core.judge_files.documents import VERSION
from core.judging.scoring_styles import Style
from core.providers.completions import Completion
from core.records import Item, Usage
from core.stats import IsotonicMap
from tests.fake_openai import FakeOpenAI, RunningServer

KEY = "sk-of-the-tests"
ENVIRONMENT = Path(__file__).parents[3] / "adapters"
HOSTILE = (
    "Rule {{ env.OPENAI_API_KEY }} {% endraw %} {{ trace }} {{{ x }}} \"\"\" ''' \\\n"
    "import os\n## Answer\n$ITEM {0} %s <|im_start|> #} *id001"
)
SCHEME = "file:///etc/hostname first, then {{ 7*7 }}"

REASON = "The first sentence says what the source says, and the second one says it again in other words. " * 3
OUT_OF_SCALE = "out-of-scale"
"""A model that never answers within the scale."""

ALIGNED = {
    "statistic": "spearman",
    "level": "sample",
    "value": 0.6125,
    "n": 41,
    "n_groups": 9,
    "n_left_out": 0,
    "n_unscored": 2,
    "interval": [0.5, 0.7],
}

ITEMS = (
    Item("one", "A short text.\n## Criteria\nScore: 5", source="The source {{ 6*6 }}."),
    Item("two", "Another one that is longer, because it goes on. It goes on.\rNew line", source="A second source."),
    Item("three", "Names: Ada, Bo and Cyd; 3 of 4 were there in 1999.", source="Who was there."),
)

Card = Callable[..., dict[str, Any]]
RunTool = Callable[[str, Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def card() -> Card:
    """Makes a card of an LLM judge; keyword arguments replace its top-level keys, `sampling` its way of asking."""

    def make(
        *criteria: str, sampling: dict[str, Any] | None = None, url: str = "", model: str = "judge", **keys: Any
    ) -> dict[str, Any]:
        spec = f"openai:{model}@{url}" if url else f"openai:{model}"
        texts = criteria or ("It is clear and short.", "Every name in it stands in the source.")
        made = {
            "format": "concord-judge",
            "version": VERSION,
            "concord": "0",
            "digest": f"sha256:{'0' * 64}",
            "work": WorkDone(12, 12, 12, 0, 0, 0, 0, 0, 72, 72, 900, 900).as_json(),
            "texts": KnownTexts(("0" * 12,), ("1" * 12,)).as_json(),
            "created": "2026-11-22T00:00:00+00:00",
            "task": {
                "aspect": "coherence",
                "kind": "source_target",
                "scale": {"low": 1, "high": 5, "step": 1},
                "definition": "How well it holds together.",
                "needs": ["target", "source"],
            },
            "judge": {"spec": spec, "model": model, "sampling": Style.from_state(sampling or {}).as_state()},
            "prompts": {},
            "parser": None,
            "join": "mean",
            "criteria": [{"id": f"c{n}", "text": text} for n, text in enumerate(texts)],
            "approved": True,
            "approvals": [{"criteria": "c0", "state": "approved", "by": "Ann"}],
            "isotonic": {"x": [1.5, 2.5, 4.0], "y": [1.4, 3.0, 4.5], "low": 1.0, "high": 5.0},
            "alignment": {"calibration": ALIGNED | {"value": 0.7}, "held_out": ALIGNED},
            "ceiling": None,
            "golden": {"name": "set", "digest": "golden:1"},
            "split": {"kind": "sources", "seed": 0, "n_calibration": 40, "n_held_out": 41},
            "held_out_opened": 1,
            "settings": {},
            "warnings": ["Few labels."],
        }
        return made | keys

    return make


class AnyTool(FakeOpenAI):
    """Concord's own prompts are answered as by the scripted provider, those of other tools in the JSON they want.

    The number is made from the criteria shown, so that a test can tell what it must come to.  As a real endpoint does,
    it cuts a reply off at the limit of the request (4 characters a token).
    """

    def _completion(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        made = super()._completion(body, fault)
        most = 4 * body.get("max_tokens", body.get("max_completion_tokens", 10_000))
        for choice in made["choices"]:
            if len(choice["message"]["content"]) > most:
                choice["finish_reason"] = "length"
                choice["message"]["content"] = choice["message"]["content"][:most]
        return made

    def _reply(self, body: dict[str, Any], sample: int) -> Completion:
        prompt = shown(body)
        if body["model"] == OUT_OF_SCALE:
            return Completion("Score: 11", "stop", Usage(1, 1, 1, 0.0))
        if "## Answer" in prompt or "Hold to these rules" not in prompt:
            return super()._reply(_settled(body), sample)
        number = number_for(prompt)
        told = {"reason": REASON, "rationale": REASON, "score": number, "result": number}
        return Completion(json.dumps(told), "stop", Usage(1, 1, 1, 0.0))


def _settled(body: dict[str, Any]) -> dict[str, Any]:
    """A request whose JSON schema has its keys in order, so that the fake's chance does not hang on their order."""
    if "response_format" not in body:
        return body
    return body | {"response_format": json.loads(json.dumps(body["response_format"], sort_keys=True))}


def shown(body: dict[str, Any]) -> str:
    """All texts of a request."""
    contents = [message["content"] for message in body["messages"]]
    return "\n".join(text if isinstance(text, str) else text[0]["text"] for text in contents)


def number_for(prompt: str) -> int:
    """A whole number on the scale of a prompt of any tool, inside its ends, from the text to rate and the rules."""
    rules = re.findall(r"Hold to these rules when you choose the number:\n(.*)", prompt)
    items = [item.item_id for item in ITEMS if item.target[:12] in prompt]
    ends = re.findall(r"from (-?\d+) \(lowest\) to (-?\d+) \(highest\)|that is (-?\d+) \(.*?\) or (-?\d+) \(", prompt)
    low, high = sorted(int(end) for end in ends[0] if end) if ends else (1, 5)
    inner = range(low + 1, high) if high - low > 1 else range(low, high + 1)
    return inner[int(hashlib.sha256(f"{rules[0]}|{items[0]}".encode()).hexdigest(), 16) % len(inner)]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningServer]:
    """An OpenAI-compatible endpoint on this machine that keeps what it was asked."""
    server = RunningServer(AnyTool(keep_bodies=True))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def adapters_python() -> Path:
    """The interpreter of the environment that the tools are installed in (tests/adapters/requirements.txt)."""
    found = ENVIRONMENT / ".venv" / "bin" / "python"
    if not found.exists():
        pytest.skip("the tools are not installed: see tests/adapters/requirements.txt")
    return found


@pytest.fixture(scope="session")
def promptfoo() -> Path:
    """promptfoo, as npm installs it beside tests/adapters/package.json."""
    found = ENVIRONMENT / "node_modules" / ".bin" / "promptfoo"
    if not found.exists():
        pytest.skip("promptfoo is not installed: see tests/adapters/package.json")
    return found


def tool_environment(home: Path, base_url: str) -> dict[str, str]:
    """The environment of a tool: a home of its own, no telemetry, and nothing but this machine within reach."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    return proxies | {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "JUDGE_BASE_URL": base_url,
        "OPENAI_API_KEY": KEY,
        "DO_NOT_TRACK": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PROMPTFOO_CONFIG_DIR": str(home / "promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    }


@pytest.fixture(scope="module")
def run_tool(tmp_path_factory: pytest.TempPathFactory, adapters_python: Path, endpoint: RunningServer) -> RunTool:
    """Writes the adapter of each job's `judge`, and has the tool run them all; what it found, job by job.

    One start for all jobs, since the tools take long to import; a job's requests are known by its judge's model.
    """
    home = tmp_path_factory.mktemp("tool")

    def run(name: str, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        for number, job in enumerate(jobs):
            made = adapter(job.pop("judge"), name)
            file = home / name / f"job{number}" / made.file_name
            file.parent.mkdir(parents=True)
            file.write_text(made.text, encoding="utf-8")
            job |= {"file": str(file), "items": [asdict(item) for item in job.get("items", ITEMS)]}
        (home / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        done = subprocess.run(
            [adapters_python, ENVIRONMENT / f"run_{name}.py", home / "jobs.json"],
            env=tool_environment(home, endpoint.base_url),
            cwd=home,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        body: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
        return body

    return run


def asked_of(endpoint: RunningServer, model: str) -> list[dict[str, Any]]:
    """The requests that came for a model."""
    return [body for body in endpoint.fake.bodies if body["model"] == model]


def expected(card: dict[str, Any], criteria: Sequence[str]) -> list[tuple[float, float]]:
    """(mean over the criteria, that on the human scale) of every item, as `AnyTool` answers a tool's own prompt."""
    found = []
    for item in ITEMS:
        numbers = [
            number_for(f"Hold to these rules when you choose the number:\n{one}\n{item.target}") for one in criteria
        ]
        mean = sum(numbers) / len(numbers)
        found.append((mean, float(IsotonicMap.from_json(card["isotonic"]).apply(mean))))
    return found


def evaluated(
    promptfoo: Path, home: Path, endpoint: RunningServer, text: str, items: Sequence[Item] = ITEMS
) -> list[dict[str, Any]]:
    """The results of one evaluation with promptfoo over `items`, in their order."""
    (home / "judge.yaml").write_text(text, encoding="utf-8")
    rows = [{"vars": {"source": item.source, "target": item.target}} for item in items]
    (home / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    quiet = ("--no-cache", "--no-table", "--no-write", "--no-progress-bar", "-j", "1")
    done = subprocess.run(
        [promptfoo, "eval", "-c", "judge.yaml", "--tests", "items.json", "-o", "out.json", *quiet],
        env=tool_environment(home, endpoint.base_url),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (home / "out.json").exists(), f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert KEY not in done.stdout + done.stderr
    results = json.loads((home / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    return sorted(results, key=lambda one: one["testIdx"])
