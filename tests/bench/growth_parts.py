"""What `bench_growth` measures inside a process: each part prepares what it needs, and gives what the rest took."""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_large import WORDS, draw, processor_seconds, remember_somebody

TEXTS = 997
"""Different texts; each item's is made its own by its number."""


# ── data, made on the fly ────────────────────────────────────────────────────────────────────────────────────────


def rows(n: int, *, labelled: bool) -> Iterable[dict[str, Any]]:
    """Items of ten systems a source; labels of 1 to 5, and three people's."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 30)) for _ in range(TEXTS)]
    labels = rng.integers(1, 6, (n, 3)) if labelled else None
    for k in range(n):
        row = {"item_id": f"i{k}", "source_id": f"d{k // 10}", "system_id": f"s{k % 10}"}
        row |= {"source": texts[k // 10 % TEXTS], "target": f"{texts[k % TEXTS]} case {k}"}
        if labels is not None:
            raters = labels[k].tolist()
            row |= {"ann_coherence": raters, "human_coherence": sum(raters) / 3}
        yield row


def written(file: Path, lines: Iterable[Any]) -> str:
    if not file.exists():
        with file.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)
    return str(file)


def golden(folder: Path, n: int) -> str:
    return written(folder / f"golden{n}.jsonl", rows(n, labelled=True))


def items(folder: Path, n: int) -> str:
    return written(folder / f"items{n}.jsonl", rows(n, labelled=False))


def verdicts(folder: Path, n: int, seed: int = 1) -> str:
    scores = np.random.default_rng(seed).normal(3, 1, n).round(3).tolist()
    lines = ({"item_id": f"i{k}", "score": score} for k, score in enumerate(scores))
    return written(folder / f"verdicts{n}-{seed}.jsonl", lines)


# ── parts measured inside a process ──────────────────────────────────────────────────────────────────────────────


def processor(work: Callable[[], Any], times: int = 1) -> float:
    """Median processor seconds of the work, with the process that decodes its file."""
    from core.data.tables import READER

    spent = []
    for _ in range(times):
        gc.collect()
        before = processor_seconds()
        READER.cost = ()
        work()
        spent.append(processor_seconds() - before + sum(READER.cost[:1]))
    return statistics.median(spent)


def opened() -> tuple[Any, Any, str]:
    """A new store, its settings and a project in it."""
    from core import projects
    from core.memory import collect_seldom
    from core.settings import Settings

    settings = Settings.from_environment()
    store = projects.open_store(settings)
    collect_seldom()  # as the server does when it starts
    return store, settings, projects.create_project(store, "growth").project_id


def read_golden(folder: Path, n: int) -> Any:
    import core

    return core.load_golden(golden(folder, n))


def freeze(folder: Path, n: int) -> float:
    """A file as the screen reads, checks and keeps it."""
    from core import projects
    from core.data import build_golden, propose_mapping

    store, _, project_id = opened()
    data = Path(golden(folder, n)).read_bytes()

    def bring_in() -> None:
        table = projects.read_upload(store, data, "golden.jsonl", max_mb=2_000)
        built = build_golden(table, propose_mapping(table.columns, table.rows), {})
        assert built.golden is not None
        projects.add_golden(store, project_id, built.golden)

    return processor(bring_in)


def store_size(folder: Path, n: int) -> float:
    """MB of the store with one golden set."""
    from core import projects

    store, settings, project_id = opened()
    projects.add_golden(store, project_id, read_golden(folder, n))
    store.close()
    return sum(file.stat().st_size for file in settings.home.glob("concord.sqlite*")) / 1e6


def import_scores(folder: Path, n: int) -> float:
    """A judge's scores read, matched and kept."""
    from core import projects

    store, _, project_id = opened()
    golden_id = projects.add_golden(store, project_id, read_golden(folder, n))
    projects.load_golden_set(store, golden_id)
    data = Path(verdicts(folder, n)).read_bytes()

    def bring_in() -> None:
        recording = projects.read_recording(store, data, "verdicts.jsonl", max_mb=2_000)
        shown = projects.preview_import(store, golden_id, "coherence", recording)
        projects.import_judge(store, project_id, shown, "theirs")

    return processor(bring_in)


def revisit(folder: Path, n: int) -> float:
    """A full evaluation of `n` drafts on 320 items, drafting and choosing with it."""
    import core
    from core.calibration import settings as known
    from core.calibration.settings import CalibrationSettings, Preset

    known.PRESETS = dict(known.PRESETS) | {"growth": Preset((4, 6, 8, 10, 12), n // 5, 1)}
    chosen = CalibrationSettings(preset="growth", revisit="full", rounds=0, fit_strengths=False)
    labelled = read_golden(folder, 640)
    core.calibrate(labelled, "coherence", settings=CalibrationSettings(preset="quick", rounds=0))  # what it imports
    return processor(lambda: core.calibrate(labelled, "coherence", settings=chosen))


def ceiling(folder: Path, n: int, *, crowd: bool) -> float:
    """Agreement and leave-one-rater-out of `n` raters: a panel that rates all of 300 items, or a crowd, three an item,
    forty items each."""
    import core

    core.ceiling(rated(3, crowd=False), "wit")  # what it imports
    people = rated(n, crowd=crowd)
    return processor(lambda: core.ceiling(people, "wit"), 3)


def rated(n: int, *, crowd: bool) -> Any:
    """A golden set whose labels are the means of what `n` people gave: the truth with as much noise."""
    from core.records import AspectLabels, GoldenSet, Item, Rating, Scale

    rng = np.random.default_rng(0)
    n_items = 40 * n // 3 if crowd else 300
    truth = rng.normal(3, 1, n_items)
    ratings, labels = [], []
    for k in range(n_items):
        raters = [(k * 3 + j) % n for j in range(3)] if crowd else range(n)
        given = np.clip(np.round(truth[k] + rng.normal(0, 1, len(raters))), 1, 5).tolist()
        ratings += [Rating(f"i{k}", f"r{r}", "wit", v) for r, v in zip(raters, given, strict=True)]
        labels.append(float(np.mean(given)))
    texts = tuple(Item(f"i{k}", f"text {k}", f"d{k // 10}") for k in range(n_items))
    return GoldenSet("g", "single", texts, {"wit": AspectLabels("wit", Scale(1, 5), tuple(labels))}, tuple(ratings))


def project_list(folder: Path, n: int) -> float:
    """The Overview of one project among `n`, drawn anew."""
    from pages.components import serving

    serving.get_ready()
    remember_somebody()
    store, _, project_id = opened()
    store.together(lambda: [store.projects.add(f"project {k}") for k in range(n - 1)])
    return statistics.median(draw("0_overview", {"project": project_id}, {})[1]) / 1000


def page(folder: Path, n: int, *, part: str) -> float:
    """Golden set drawn anew with `n` items in it."""
    from core import projects
    from pages.components import serving, state

    serving.get_ready()
    remember_somebody()
    store, _, project_id = opened()
    projects.add_golden(store, project_id, read_golden(folder, n))
    return statistics.median(draw("1_golden_set", {"project": project_id}, {state.GOLDEN_PART: part})[1]) / 1000


PARTS: dict[str, Callable[[Path, int], float]] = {
    "freeze": freeze,
    "store": store_size,
    "import": import_scores,
    "revisit": revisit,
    "ceiling-panel": partial(ceiling, crowd=False),
    "ceiling-crowd": partial(ceiling, crowd=True),
    "projects": project_list,
    "page-labels": partial(page, part="Labels"),
    "page-items": partial(page, part="Items"),
    "page-groups": partial(page, part="Sources and systems"),
}
