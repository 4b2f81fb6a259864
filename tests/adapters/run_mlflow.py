"""Calls generated MLflow judges: JOBS.json → JSON on the last line of standard output."""

import importlib.util
import json
import os
import sys
from pathlib import Path

from mlflow.genai.judges import Judge
from mlflow.genai.scorers import Scorer


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"judge_{Path(path).parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(job):
    module = loaded(job["file"])
    os.environ.pop("JUDGE_MODEL", None)
    if job.get("model"):
        os.environ["JUDGE_MODEL"] = job["model"]
    try:
        made = module.judges()
    except ValueError as error:
        return {"refused": str(error)}
    assert isinstance(module.concord_judge, Scorer)
    assert all(isinstance(judge, Judge) for judge in made)
    found = []
    for item in job["items"]:
        feedback = module.concord_judge(
            inputs={"source": item["source"], "context": item["context"]}, outputs=item["target"]
        )
        told = {"value": feedback.value, "why": feedback.rationale, **feedback.metadata}
        found.append(told | {"error": feedback.error.error_message if feedback.error else None})
    return {"variables": [sorted(judge.template_variables) for judge in made], "scores": found}


print(json.dumps([called(job) for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]))
