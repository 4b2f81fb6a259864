"""Fixtures every test may use, and the isolation every test runs in.

Nothing of the developer's environment reaches a test: keys, endpoints and `CONCORD_*` settings are removed before
the first import, the Hugging Face hub is off line, and whatever is kept goes to a temporary folder.  What a test needs
from outside (reference data, Chromium, Postgres) is a fixture that skips with a reason; with `CI` set such a skip is a
failure, so that a run there cannot pass by leaving tests out.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from core.settings import Settings
from tests.other_processor import compute_otherwise
from tests.outside import recording

if TYPE_CHECKING:
    from core.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
IN_CI = bool(os.environ.get("CI"))
FOREIGN_PREFIXES = ("OPENAI_", "CONCORD_", "AZURE_OPENAI_", "HF_", "HUGGING_FACE_", "STREAMLIT_")
KEPT = "CONCORD_TEST_POSTGRES_URL"
MARKER_OF_FIXTURE = {
    "shared_data": "shared",
    "postgres_url": "postgres",
    "adapters_python": "adapters",
    "promptfoo": "adapters",
    "chromium": "browser",
    "browser": "browser",
    "context": "browser",
    "page": "browser",
    "lone_namespace": "ray",
}
BROWSER = "tests/browser/"
SECOND_ROW = "tests/browser/test_lab"
"""From here on, of the files in alphabetical order."""
LONGEST = (
    BROWSER,
    "tests/outside/test_killed.py",
    "tests/core/jobs/test_queue.py",
    "tests/core/test_two_nodes.py",
    "tests/core/scoring/test_on_ray.py",
)
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell first: a Chromium draws a window that nobody sees for each browser profile."""
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Tests run on all cores already; said here, since `pytest tests/core/…` imports numpy before anything is configured.
os.environ.setdefault("OMP_NUM_THREADS", "1")

hypothesis.settings.register_profile("developer", deadline=None, max_examples=50)  # other ones in every run
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, max_examples=50)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="Write the recordings of tests/outside anew.")
    parser.addoption(
        "--other-processor", action="store_true", help="Change the last digits of models, as another processor does."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Cut the environment before any test module is imported; subprocesses inherit the cut."""
    for name in [n for n in os.environ if n.startswith(FOREIGN_PREFIXES) and n != KEPT]:
        del os.environ[name]
    home = tempfile.mkdtemp(prefix="concord-tests-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ |= {"CONCORD_HOME": home, "HF_HUB_OFFLINE": "1", "HF_HOME": f"{home}/huggingface"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: what one compiled serves all
    sys.dont_write_bytecode = False
    os.environ["CONCORD_DEMO"] = "off"  # a new store holds the plain sample project alone
    hypothesis.settings.load_profile("ci" if IN_CI else "developer")
    if config.getoption("--other-processor"):
        compute_otherwise()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests by the outside fixtures they use, so that `-m "not browser"` needs no care by the author."""
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in MARKER_OF_FIXTURE:
            item.add_marker(MARKER_OF_FIXTURE[fixture])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live to the end: to look through them for garbage took a fifth of the time to collect them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the longest comes first, so that no process is left alone with it in the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are processors: a third of the time a test waits for a server, a worker or a browser."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file stays in one process.  Browser tests go in two rows, each with a server, a worker and a Chromium at a
    time: one row outlasted all other tests, and left a processor idle."""
    from xdist.scheduler import LoadFileScheduling

    class BrowserInTwoRows(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(BROWSER):
                return f"{BROWSER} {'first' if nodeid < SECOND_ROW else 'second'} row"
            return super()._split_scope(nodeid)

    return BrowserInTwoRows(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test that needs something from outside has failed: CI is where those things are."""
    report = yield
    outside = set(MARKER_OF_FIXTURE.values())
    if IN_CI and report.skipped and not hasattr(report, "wasxfail") and outside & {m.name for m in item.iter_markers()}:
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure in CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a test module that skips itself whole has failed."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"module skipped, which is a failure in CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of reference data beside the checkout (see its DATA.md); it is not part of the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not (folder / "summeval.jsonl.gz").is_file():
        pytest.skip("the reference data is missing: ../shared/data beside the checkout")
    return folder


@pytest.fixture
def tmp_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings whose `home` is a fresh folder, set in the environment too for what reads it there."""
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a fresh home whose runs no worker takes up."""
    return Settings(home=tmp_path / "home", worker="external", worker_id="w")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """The store of `settings`, empty."""
    from core import projects

    with projects.open_store(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium installed on this machine; Playwright's own download is not used."""
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no Chromium on the path (looked for {', '.join(CHROMIUM_NAMES)})")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any], chromium: str) -> dict[str, Any]:
    """pytest-playwright's launch arguments: the machine's Chromium, quiet and without background traffic."""
    return {**browser_type_launch_args, "executable_path": chromium, "args": list(CHROMIUM_FLAGS)}


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store without a row."""
    from core.store.store import Store

    file = tmp_path_factory.mktemp("new") / "concord.sqlite"
    Store(f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="module", autouse=True)
def tables_copied(request: pytest.FixtureRequest) -> Iterator[None]:
    """A new SQLite store starts as a copy of one that was made here, which is faster than making the tables."""
    database = sys.modules.get("core.store.database")
    if database is None:
        yield
        return
    file, make = request.getfixturevalue("new_file"), database.Database._make_tables

    def copied(self: Any) -> None:
        if self.is_sqlite and not Path(self.engine.url.database).exists():
            with suppress(OSError):  # what cannot be written is told of by the store
                shutil.copyfile(file, self.engine.url.database)
        make(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database.Database, "_make_tables", copied)
        yield


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """URL of a new, empty database on the server at `CONCORD_TEST_POSTGRES_URL`; dropped after the test."""
    server = os.environ.get(KEPT)
    if not server:
        pytest.skip(f"no Postgres server to test on: {KEPT} is not set")
    import psycopg
    from psycopg.sql import SQL, Identifier

    name = f"concord_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    yield f"{server.rsplit('/', 1)[0]}/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@pytest.fixture(scope="session")
def drive() -> Callable[..., str]:
    """`drive(store, settings, run_id)` does a run here, as a worker would; its final status."""

    def driven(store: Any, settings: Settings, run_id: str) -> str:
        from core.projects.start_and_resume import execute_here

        return execute_here(store, settings, run_id)

    return driven


@pytest.fixture
def run_script(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """`run_script("tests/…", argument, …)` runs a script from the root as a program, without a process of its own.

    Exit code, standard output, standard error.
    """

    def run(script: str, *arguments: object) -> tuple[int, str, str]:
        file = repository / script
        monkeypatch.chdir(repository)
        monkeypatch.setattr(sys, "argv", [str(file), *map(str, arguments)])
        monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
        capsys.readouterr()
        code: object = 0
        try:
            runpy.run_path(str(file), run_name="__main__")
        except SystemExit as end:
            code = end.code
        return (code if isinstance(code, int) else int(code is not None)), *capsys.readouterr()

    return run


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare with what `file` holds, numbers within `error`; with --record write the file instead."""

    def compare(file: Path, now: object, error: float = 1e-6) -> None:
        if request.config.getoption("--record"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
            return
        assert file.is_file(), f"{file.name} was never recorded: run this test with --record, and read what it writes"
        found = recording.differences(json.loads(file.read_text("utf-8")), json.loads(json.dumps(now)), error=error)
        assert not found, "\n".join([f"{file.name}: {len(found)} differences", *found[:30]])

    return compare
