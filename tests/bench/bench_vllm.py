"""One model asked in the process and behind a vLLM server on the same host, by whole `score` commands.

    python tests/bench/bench_vllm.py --vllm /opt/vllm/bin/vllm [--items N] [--tokens N] [--in-flight N]
        [--where FOLDER --ray HOST:PORT] [--more "VLLM OPTIONS"] [--tiny]

vLLM brings a torch and a transformers of its own, so it has an environment of its own; `--vllm` is its command there.
Random weights of a Llama's shape, saved to a folder, write replies of so many tokens to prompts of different lengths.
It prints seconds and items a second of `python -m core score` with

- `hf:FOLDER/model`, the model in the process,
- `openai:model@http://127.0.0.1:PORT/v1`, the vLLM server, which is started here; when it was ready is told,
- the same on the Ray cluster at `--ray`, whose nodes see FOLDER and have `CONCORD_LOCAL_MODELS=FOLDER/model` and
  `CONCORD_CONCURRENCY` as `--in-flight`,

and the share of replies that are the same word by word.  Rounding decides between tokens that are nearly as likely, so
another order of additions writes some of them otherwise.  `--tiny` does it with a small model, on any computer.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("CONCORD_DEMO", "off")

import yaml  # noqa: E402

from core.export.judge_writing import sealed  # noqa: E402
from core.judging.styles import Sampling  # noqa: E402
from tests.bench.bench_same_on_gpu import CRITERIA, SHAPES, model_folder, texts  # noqa: E402
from tests.core.local_models import TEMPLATE  # noqa: E402

NAME = "model"
LONGEST_START = 600.0
"""Seconds that the server gets to load the model."""


def prepared(where: Path, options: argparse.Namespace) -> Path:
    """The model's folder, with a chat template; beside it the items."""
    SHAPES["narrow"] = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}
    folder = model_folder(where / NAME, "narrow" if options.tiny else "large")
    (folder / "chat_template.jinja").write_text("<s>" + TEMPLATE, encoding="utf-8")
    rows = [
        {"item_id": item.item_id, "source": f"Minutes of town {item.item_id}.", "target": item.target}
        for item in texts(options.items)
    ]
    (where / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def judge_file(where: Path, spec: str, n_tokens: int) -> Path:
    """The file of a judge that writes a rating, in so many tokens at most."""
    card = yaml.safe_load((ROOT / "tests" / "core" / "export" / "files" / "judge_scripted.yaml").read_text("utf-8"))
    card["judge"] = {"spec": spec, "sampling": Sampling("score_only", temperature=0.0, max_tokens=n_tokens).as_state()}
    card["criteria"] = [{"id": "c000000000001", "text": CRITERIA[1].text}]
    path = where / f"{spec.partition(':')[0]}.yaml"
    path.write_text(json.dumps(sealed(card)), encoding="utf-8")
    return path


@contextmanager
def served(folder: Path, where: Path, options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """The base URL of a vLLM server for the model, and the seconds until it answered; it is ended afterwards."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    url, started = f"http://127.0.0.1:{port}/v1", time.perf_counter()
    given = ["serve", str(folder), "--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name not in options.without}
    with (where / "vllm.log").open("wb") as log:
        command = [*shlex.split(options.vllm), *given, *shlex.split(options.more)]
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
        try:
            while not answers(f"{url}/models"):
                if server.poll() is not None or time.perf_counter() - started > LONGEST_START:
                    raise SystemExit(f"vLLM did not start: {(where / 'vllm.log').read_text('utf-8')[-3000:]}")
                time.sleep(0.5)
            yield url, time.perf_counter() - started
        finally:
            server.terminate()
            server.wait(60)


def answers(url: str) -> bool:
    """Whether a GET is answered."""
    try:
        with urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def scored(where: Path, file: Path, name: str, *more: str, in_flight: int) -> dict[str, Any]:
    """Seconds and items a second of a whole command that writes `name`."""
    given = [str(where / "items.jsonl"), "--judge-file", str(file), "--out", str(where / name), "--most-unread", "1"]
    here = {"CONCORD_LOCAL_MODELS": str(where / NAME), "CONCORD_HOME": str(where / "home")}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "core", "score", *given, "--json", *more],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | here | {"CONCORD_CONCURRENCY": str(in_flight)},
    )
    seconds, replies = time.perf_counter() - started, raw(where / name) if (where / name).exists() else {}
    if not replies:
        raise SystemExit(f"score ended with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return {"seconds": round(seconds, 2), "items_per_second": round(len(replies) / seconds, 1)}


def raw(where: Path) -> dict[str, list[str]]:
    """Replies by item, of a file or a folder of parts."""
    files = [where] if where.is_file() else sorted(where.glob("part-*"))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return {row["item_id"]: row["raw"] for row in rows}


def equal(one: Path, other: Path) -> float:
    """The share of items with the same replies."""
    first, second = raw(one), raw(other)
    return sum(first[name] == second.get(name) for name in first) / len(first)


def measure(options: argparse.Namespace, where: Path) -> Iterator[dict[str, Any]]:
    """The figures, each as soon as it is there."""
    folder = prepared(where, options)
    yield {"items": options.items, "tokens": options.tokens, "in_flight": options.in_flight}
    here = judge_file(where, f"hf:{folder}", options.tokens)
    yield {"in the process": scored(where, here, "here.jsonl", in_flight=options.in_flight)}
    with served(folder, where, options) as (url, seconds):
        yield {"vLLM ready after": round(seconds, 1)}
        there = judge_file(where, f"openai:{NAME}@{url}", options.tokens)
        yield {"vLLM": scored(where, there, "served.jsonl", in_flight=options.in_flight)}
        yield {"same replies as in the process": equal(where / "here.jsonl", where / "served.jsonl")}
        if options.ray:
            told = scored(where, there, "parts.jsonl", "--ray", options.ray, in_flight=options.in_flight)
            yield {"vLLM on Ray": told}
            yield {"same replies as without Ray": equal(where / "served.jsonl", where / "parts.jsonl")}


def main() -> None:
    """Print the figures as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True, metavar="COMMAND")
    parser.add_argument("--more", default="", help="further options of `vllm serve`")
    parser.add_argument("--without", default=[], action="append", metavar="VARIABLE", help="not in its environment")
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--where", type=Path, metavar="FOLDER", help="an empty folder that stays")
    parser.add_argument("--ray", default="", metavar="HOST:PORT")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for figure in measure(options, options.where or Path(name)):
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
