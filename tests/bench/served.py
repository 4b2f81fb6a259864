"""What benches with a server share: a golden set of 1,600 items, and a started server with its worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from conftest import end_workers, free_port, wait_until_healthy  # noqa: E402

from core.records import AspectLabels, GoldenSet, Item, Scale  # noqa: E402

PATIENCE = 120_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
N_SOURCES, N_SYSTEMS = 100, 16
WORDS = "the of a river bridge council budget school train storm harvest museum because therefore however".split()


@contextmanager
def started(home: Path) -> Iterator[str]:
    """Start the app on `home` and yield its address; the app and its worker end with the block."""
    port = free_port()
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    environment = {**os.environ, "CONCORD_HOME": str(home), "CONCORD_DEMO": "on"}
    url = f"http://127.0.0.1:{port}"
    with (home / "web.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            wait_until_healthy(url, server, every=0.01)
            yield url
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)
            end_workers(home)


def golden_set(seed: int = 0) -> GoldenSet:
    """1,600 short texts; the label falls with the share of repeated words, so that there is something to find."""
    rng = np.random.default_rng(seed)
    items, labels = [], []
    for source in range(N_SOURCES):
        text = " ".join(rng.choice(WORDS, 120)) + "."
        for system in range(N_SYSTEMS):
            words = list(rng.choice(WORDS, 40))
            repeated = int(rng.integers(0, 5))
            target = " ".join(words[: 40 - 6 * repeated] + ["storm"] * (6 * repeated)).capitalize() + "."
            items.append(Item(f"{source}-{system}", target, f"doc{source}", f"sys{system}", text))
            labels.append(float(5 - repeated))
    aspects = {"coherence": AspectLabels("coherence", Scale(1, 5, 1.0), tuple(labels))}
    return GoldenSet("bench", "source_target", tuple(items), aspects)
