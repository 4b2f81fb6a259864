"""In CI a test left out for want of a browser, a server or data is a failure; on a laptop it is a skip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEEDY = """
import pytest

def test_needs_a_server(postgres_url):
    raise AssertionError("not reached: there is no server")

@pytest.mark.shared
def test_skips_itself():
    pytest.skip("no data")

def test_plain():
    pass
"""
WHOLE_MODULE = "import pytest\npytest.skip('no such library', allow_module_level=True)\n"
ANOTHER_KIND = "import pytest\n\ndef test_skips():\n    pytest.skip('wrong platform')\n"


@pytest.mark.parametrize(
    ("ci", "closing"), [("", "1 passed, 4 skipped"), ("true", "1 failed, 1 passed, 1 skipped, 2 errors")]
)
def test_a_skip_for_want_of_something_is_a_failure_in_ci(tmp_path: Path, ci: str, closing: str) -> None:
    for name, text in (("needy", NEEDY), ("whole", WHOLE_MODULE), ("another", ANOTHER_KIND)):
        (tmp_path / f"test_{name}.py").write_text(text, "utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "CONCORD_TEST_POSTGRES_URL"}
    # `-p tests.conftest` makes the hooks and fixtures of this folder known to a file outside it.
    options = f"-c {ROOT / 'pyproject.toml'} --rootdir {tmp_path} -p tests.conftest -p no:cacheprovider -n0".split()
    options.append("--continue-on-collection-errors")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        cwd=ROOT,
        env=environment | {"CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert closing in run.stdout.splitlines()[-1], run.stdout + run.stderr
