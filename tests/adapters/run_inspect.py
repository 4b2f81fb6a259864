"""Evaluates Inspect tasks with generated scorers: JOBS.json → JSON on the last line of standard output.

The model under test is Inspect's mock, which answers with the texts to rate.
"""

import importlib.util
import json
import sys
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004 - Inspect's own name
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"judge_{Path(path).parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evaluated(job):
    items = job["items"]
    outputs = [ModelOutput.from_content("mockllm/model", item["target"]) for item in items]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1)  # else it counts them with a downloaded table
    samples = [
        Sample(id=item["item_id"], input=item["source"] or "none", target="", metadata={"context": item["context"]})
        for item in items
    ]
    [log] = eval(
        Task(dataset=samples, scorer=loaded(job["file"]).concord_judge()),
        model=get_model("mockllm/model", custom_outputs=outputs, memoize=False),
        display="none",
        log_dir=str(Path(job["file"]).parent / "logs"),
        max_samples=1,
    )
    if log.status != "success":
        sys.exit(log.error.traceback if log.error else log.status)
    found = {}
    for sample in log.samples or []:
        score = sample.scores["concord_judge"]
        value = None if score.value != score.value else score.value  # NaN: unscored
        found[str(sample.id)] = {"value": value, "reason": score.reason, **(score.metadata or {})}
    [results] = log.results.scores
    metrics = {name: metric.value for name, metric in results.metrics.items()}
    return {"scores": found, "metrics": metrics, "unscored": results.unscored_samples}


print(json.dumps([evaluated(job) for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]))
