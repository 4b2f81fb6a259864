"""The process that decodes: limits of memory and time, no secrets, and a refusal in words whatever happens there."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core.sandbox import RefusedError, allowance, run_job

JOBS = """
    import os, time
    from core.errors import GoldenError

    def echo(file, options): yield from (file.read().decode(), options)
    def memory(file, options): yield len(bytearray(2 << 30))
    def python(file, options):
        while True: pass
    def native(file, options): yield sum(range(10**11))
    def sleep(file, options): time.sleep(60); yield 1
    def crash(file, options): yield 1; os.abort()
    def fault(file, options): yield 1 / 0
    def refuse(file, options): raise GoldenError("No.", row=3, column="a")
    def write(file, options): open(options["path"], "w").write("x" * 99); yield 1
    def flood(file, options):
        while True: yield "x" * 1_000_000
    def secrets(file, options): yield dict(os.environ)
    JOBS = {name: found for name, found in list(globals().items()) if callable(found) and name.islower()}
"""
Ask = Callable[..., list[object]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Jobs that do what a hostile file might make a decoder do."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "hostile_jobs.py").write_text(textwrap.dedent(JOBS))

    def values(job: str, data: bytes = b"", options: dict[str, object] | None = None, **more: int) -> list[object]:
        allowed = {"memory": 200 << 20, "seconds": 1, "wall": 1 if job == "sleep" else 60}
        return list(run_job("hostile_jobs", job, data, options or {}, allowed, folder=folder, **more))

    return values


def test_values_come_back(ask: Ask) -> None:
    assert ask("echo", "ä".encode(), {"a": [1]}) == ["ä", {"a": [1]}]


@pytest.mark.parametrize(
    ("job", "words", "more"),
    [
        ("memory", "more memory than", {}),
        ("python", "more time than", {}),
        ("native", "can't be read within 200 MB of memory and 1 s of computing time|more time", {}),
        ("crash", "can't be read within 200 MB of memory and 1 s", {}),
        ("fault", "can't be read within 200 MB of memory and 1 s", {}),
        ("flood", "larger than 3 MB", {"most": 3 << 20}),
        ("sleep", "can't be read", {}),
    ],
)
def test_what_a_file_may_not_bring_is_refused_and_the_next_is_read(
    ask: Ask, job: str, words: str, more: dict[str, int]
) -> None:
    started = time.monotonic()
    with pytest.raises(RefusedError, match=words):
        ask(job, **more)
    assert time.monotonic() - started < 90
    assert ask("echo", b"next") == ["next", {}]


def test_a_refusal_keeps_its_place(ask: Ask) -> None:
    with pytest.raises(RefusedError) as refused:
        ask("refuse")
    assert (refused.value.message, refused.value.row, refused.value.column) == ("No.", 3, "a")


def test_nothing_is_written_to_disk(ask: Ask, tmp_path: Path) -> None:
    with suppress(RefusedError):
        ask("write", options={"path": str(tmp_path / "x")})
    assert not (tmp_path / "x").exists() or not (tmp_path / "x").read_bytes()


def test_no_secret_reaches_it(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (found,) = ask("secrets")
    assert isinstance(found, dict)
    assert not {"OPENAI_API_KEY", "HOME", "PATH", "CONCORD_DATABASE_URL"} & found.keys()
    assert "sk-secret" not in found.values()


def test_a_larger_file_may_cost_more() -> None:
    small, large = allowance(10_000), allowance(100 << 20, streaming=True)
    assert (small["memory"] >> 20, small["seconds"]) == (900, 8)
    assert large == {"memory": 1600 << 20, "seconds": 408, "wall": 0}
