"""Measures test cases with generated DeepEval metrics: JOBS.json → JSON on the last line of standard output."""

import importlib.util
import json
import sys
from pathlib import Path

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.test_case import LLMTestCase


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"judge_{Path(path).parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(job):
    module = loaded(job["file"])
    cases = [
        LLMTestCase(
            input=item["source"] or "none",
            actual_output=item["target"],
            context=[item["context"]] if item["context"] else None,
        )
        for item in job["items"]
    ]
    found = []
    for case in cases:
        metric = module.ConcordJudge()
        metric.measure(case)
        told = {"score": metric.score, "human": metric.human_score, "judge": metric.judge_score}
        found.append(told | {"why": metric.reason, "passed": metric.is_successful()})
    if not job.get("evaluate"):
        return {"measured": found}
    result = evaluate(
        cases,
        [module.ConcordJudge()],
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        async_config=AsyncConfig(run_async=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
    )
    evaluated = sorted((case.index, case.metrics_data[0].score) for case in result.test_results)
    return {"measured": found, "evaluated": [score for _, score in evaluated]}


print(json.dumps([measured(job) for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]))
