"""What stays out of memory: a light `import core`, and a web process without the heavy libraries.

Each import runs in a process of its own, so that nothing other tests imported is counted.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB_HEAVY = {"torch", "transformers", "sklearn", "ray", "nltk", "rouge_score", "bert_score", "sentence_transformers"}


def loaded_after(code: str) -> set[str]:
    """Top-level names in `sys.modules` after a fresh interpreter ran `code` in the root of the checkout."""
    report = "\nimport json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    run = subprocess.run(
        [sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


def web_imports() -> list[str]:
    """Import statements for all that app.py and pages/ import, at whatever depth of the file."""
    files = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    wanted = {ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)}
    return sorted(line for line in wanted if not line.startswith("from __future__"))


def test_import_core_loads_nothing_heavy() -> None:
    loaded = loaded_after("import core")
    assert "core" in loaded
    assert not loaded & (WEB_HEAVY | {"streamlit", "sqlalchemy", "pandas", "scipy", "aiohttp"})


def test_what_screens_import_is_light() -> None:
    modules = "core.projects, core.report.figures, core.store, core.data, core.settings"
    assert not loaded_after(f"import {modules}") & (WEB_HEAVY | {"streamlit"})


def test_every_package_can_be_the_first_that_is_imported() -> None:
    """No circle of imports works only because something else was imported before: each package in a fork of its own."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "core").rglob("*.py")
        if path.name == "__init__.py" or path.parent.name == "core"
    ]
    code = """
import importlib, json, os, sys, traceback
import numpy, pydantic, sqlalchemy, typer, yaml
failed = []
for name in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
print(json.dumps(failed))
"""
    run = subprocess.run(
        [sys.executable, "-c", code, json.dumps(sorted(modules))], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert json.loads(run.stdout) == [], run.stderr[-2000:]


def test_the_web_process_stays_light() -> None:
    """Everything the screens import, loaded together as in one server process."""
    lines = web_imports()
    assert any("core.projects" in line or "core import projects" in line for line in lines)
    loaded = loaded_after("\n".join(lines))
    assert "streamlit" in loaded
    assert not loaded & WEB_HEAVY


def test_the_command_line_starts_light() -> None:
    code = """
import runpy, sys
sys.argv = ["core", "--help"]
try:
    runpy.run_module("core", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
"""
    assert not loaded_after(code) & (WEB_HEAVY | {"streamlit"})
