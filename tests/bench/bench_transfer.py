"""Exporting and importing a project of SummEval's size: 1,600 items, 38,400 ratings, 60 candidates scored in full.

``python tests/bench/bench_transfer.py [--items 1600] [--runs 1] [--replies 20000]`` prints CPU seconds, the file's
size and the most memory (from the kernel, MB over what the process held before).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core import projects  # noqa: E402
from core.calibration.settings import CalibrationSettings  # noqa: E402
from core.projects.calibration import CalibrationRequest  # noqa: E402
from core.records import AspectLabels, Criteria, GoldenSet, Item, Rating, Scale, ScoreMatrix  # noqa: E402
from core.settings import Settings  # noqa: E402
from core.store.codec import pack  # noqa: E402
from core.store.store import Store  # noqa: E402

T = TypeVar("T")
CANDIDATES = 60


def golden_of(n: int) -> GoldenSet:
    """`n` items of 16 systems with 4 aspects and 24 ratings each; texts of news length."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(5_000)])
    text = [" ".join(rng.choice(words, 60)) for _ in range(n)]
    source = [" ".join(rng.choice(words, 400)) for _ in range(-(-n // 16))]
    items = tuple(Item(f"i{k}", text[k], f"s{k // 16}", f"m{k % 16}", source[k // 16]) for k in range(n))
    names = ("coherence", "fluency", "consistency", "relevance")
    aspects = {a: AspectLabels(a, Scale(1, 5), tuple(rng.uniform(1, 5, n).tolist())) for a in names}
    ratings = tuple(Rating(i.item_id, f"r{k}", a, float(1 + (k % 5))) for i in items for a in names for k in range(6))
    return GoldenSet("bench", "source_target", items, aspects, ratings)


def fill(store: Store, n: int, n_runs: int, n_replies: int) -> str:
    """A project whose runs scored every candidate on every item, with a reply each for the first `n_replies`."""
    project_id = projects.create_project(store, "bench").project_id
    golden = golden_of(n)
    golden_id = projects.add_golden(store, project_id, golden)
    rng = np.random.default_rng(1)
    candidates = [Criteria(f"Reward candidate {k}. " * 40, "coherence") for k in range(CANDIDATES)]
    store.criteria.add(project_id, golden_id, candidates)
    request = CalibrationRequest(project_id, golden_id, "coherence", settings=CalibrationSettings())
    for _ in range(n_runs):
        body = pack(request).body
        run_id = store.runs.add(project_id, golden_id, "calibration", "t", "coherence", "openai:m", body)
        store.runs.claim(run_id, 1, "w")
        for k, criteria in enumerate(candidates):
            values = rng.uniform(1, 5, n)
            scored = ScoreMatrix((criteria.criteria_id,), golden.item_ids, values[np.newaxis])
            store.results.add_scores(run_id, range(n), scored)
            store.results.put_document(run_id, f"kept {k}", pack({"values": values, "text": criteria.text}))
        body = json.dumps({"text": "A reply of usual length. " * 20, "finish": "stop", "usage": {"requests": 1}})
        keys = [f"reply:{run_id}:{k}" for k in range(n_replies)]
        store.replies.of_run(run_id, project_id).put_replies([(key, body) for key in keys])
        store.runs.finish(run_id, 1, "cancelled")
    return project_id


def measured(what: str, work: Callable[[], T]) -> T:
    """Do `work` and print its CPU seconds and how far the process's peak of memory rose."""
    before, started = _peak(), time.process_time()
    result = work()
    print(f"{what:<10}{time.process_time() - started:7.2f} s CPU   peak +{_peak() - before:6.1f} MB")
    return result


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1600)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--replies", type=int, default=20_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        with Store(f"sqlite:///{folder}/here.sqlite") as here, Store(f"sqlite:///{folder}/there.sqlite") as there:
            project_id = fill(here, chosen.items, chosen.runs, chosen.replies)
            file = Path(folder) / "p.zip"
            ceiling = measured("export", lambda: projects.export_project(here, settings, project_id, file))
            measured("look", lambda: projects.preview_project(there, settings, file))
            measured("import", lambda: projects.import_project(there, settings, file))
            unpacked = sum(size for _, size in _sizes(file))
            print(f"{ceiling.holds.words}: {ceiling.size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB unpacked")


def _sizes(file: Path) -> list[tuple[str, int]]:
    import zipfile

    with zipfile.ZipFile(file) as found:
        return [(member.filename, member.file_size) for member in found.infolist()]


if __name__ == "__main__":
    main()
