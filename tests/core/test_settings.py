from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import UsageError
from core.settings import Settings


def _with_roles(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "roles.json"
    file.write_text(text, "utf-8")
    return Settings.from_environment({"CONCORD_ROLES": str(file)})


def test_roles_by_identity(tmp_path: Path) -> None:
    settings = _with_roles(tmp_path, '{"Ann@Example.org": "admin", "*": "annotator"}')
    assert settings.role_of(" ann@example.ORG ") == "admin"
    assert settings.role_of("somebody@else") == "annotator"
    assert _with_roles(tmp_path, "{}").role_of("somebody@else") == "viewer"
    assert Settings.from_environment({}).role_of("anybody") == "viewer"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        ('{"a": "boss"}', "the unknown role 'boss' to 'a'. Use one of: viewer"),
        ('{"a": ["admin"]}', "Use one of: viewer"),
    ],
)
def test_a_bad_file_of_roles(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _with_roles(tmp_path, text)
    with pytest.raises(UsageError, match="CONCORD_ROLES"):
        Settings.from_environment({"CONCORD_ROLES": "/nowhere/roles.json"})
