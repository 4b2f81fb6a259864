"""The scripts for GPU hosts: their paths run on a processor with a tiny model, and they say when there is no GPU."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

RunScript = Callable[..., tuple[int, str, str]]
SCRIPT = "tests/bench/bench_repeval_gpu.py"


def test_the_tiny_run_reads_what_the_papers_style_reads(run_script: RunScript) -> None:
    code, out, _ = run_script(SCRIPT, *"--tiny --json --texts 6 --paper-texts 3 --lengths 9 20".split())
    assert code == 0
    body = json.loads(out)
    # 3 blocks: 4 * 32 * 32 * .75 (k, v are half as wide) + 3 * 32 * 64 + 2 norms of 32; embeddings; the last norm
    assert body["weights"] == 3 * (3072 + 6144 + 64) + 300 * 32 + 32
    assert [length["length"] for length in body["lengths"]] == [9, 20]
    for one in body["lengths"]:
        assert one["largest_gap"] < 2**-11  # states are handed on in half precision
        assert one["tokens_per_second"] > 0
        assert one["share_of_ceiling"] > 0


def test_the_processor_beside_itself_differs_by_the_number_format_alone(run_script: RunScript) -> None:
    code, out, _ = run_script("tests/bench/bench_same_on_gpu.py", *"--tiny --items 3 --command-items 0".split())
    assert code == 0
    figures = {name: value for line in out.splitlines() for name, value in json.loads(line).items()}
    gaps = {"scores": 0.0, "likelihoods": 0.0, "states": 0.0, "written_equal": 1.0, "off_scale_differs": 0.0}
    assert figures["float32"] == gaps
    assert 0 < figures["bfloat16"]["scores"] < 0.1  # 8 bits


def test_without_a_gpu_it_says_that_nothing_was_measured(run_script: RunScript) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    code, _, err = run_script(SCRIPT)
    assert code == 2
    assert "Not measured" in err
