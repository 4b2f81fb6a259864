"""Public sets of human ratings, fetched from their homes and converted to golden files.

::

    CATALOGUE ── find_benchmark(name) ──> Benchmark (addresses, licence, citation, parts, converter)
    fetch_benchmark(benchmark, out, record=…) ── download or `files` ──> read_fields ──> convert ──> check ──> out

`catalogue.yaml` names the sets and the fields of their aspects, `converters` holds one function a set, `records` the
checked reading that all use.
JSON, JSONL and CSV only; what comes is never executed.
"""

from core.data.public_sets.fetch import CATALOGUE, Benchmark, FetchedSet, Part, fetch_benchmark, find_benchmark

__all__ = [
    "CATALOGUE",
    "Benchmark",
    "FetchedSet",
    "Part",
    "fetch_benchmark",
    "find_benchmark",
]
