"""The start-up files: units that systemd takes, a compose file and a proxy that fit them, settings that exist."""

from __future__ import annotations

import configparser
import fnmatch
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.jobs import queue
from core.settings import Settings

UNITS = ("concord-web@.service", "concord-worker.service")


@pytest.fixture
def deploy(repository: Path) -> Path:
    return repository / "core" / "jobs" / "deploy"


@pytest.fixture
def compose(deploy: Path) -> Mapping[str, Any]:
    return yaml.safe_load((deploy / "compose.yaml").read_text("utf-8"))


def unit(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(file.read_text("utf-8"))
    return parser


def environment(file: Path) -> dict[str, str]:
    """What systemd and compose read of an environment file, the lines that are switched off with it."""
    lines = (line.lstrip("#") for line in file.read_text("utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_its_keys_and_its_process_apart(deploy: Path, name: str) -> None:
    service = unit(deploy / name)["Service"]
    assert service["EnvironmentFile"] == "/etc/concord/concord.env"
    assert (service["User"], service["UMask"], service["StateDirectoryMode"]) == ("concord", "0077", "0700")
    assert service["ProtectSystem"] == "strict"
    assert "CONCORD_HOME=/var/lib/concord" in service["Environment"].split()
    for on in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "RestrictSUIDSGID", "ProtectKernelModules"):
        assert service[on] == "yes", on
    assert service["CapabilityBoundingSet"] == ""
    assert not re.search(r"KEY|PASSWORD", (deploy / name).read_text("utf-8"))


def test_every_setting_of_the_example_exists(deploy: Path, tmp_path: Path) -> None:
    given = environment(deploy / "concord.env.example")
    known = set(re.findall(r"^\| `([A-Z_]+)`", (Path(queue.__file__).parents[1] / "settings.py").read_text(), re.M))
    assert known >= set(given) > {"CONCORD_DATABASE_URL", "OPENAI_API_KEY"}
    (tmp_path / "roles.json").write_text('{"*": "viewer"}')
    settings = Settings.from_environment(given | {"CONCORD_ROLES": str(tmp_path / "roles.json")})
    assert settings.database_url == "postgresql://concord@127.0.0.1/concord"
    assert settings.openai_api_key is None  # no key in a file that is published


def test_what_people_put_beside_the_compose_file_gets_into_no_image_and_no_commit(
    compose: Mapping[str, Any], deploy: Path, repository: Path
) -> None:
    """Keys, passwords, who may do what; the image is built from the whole checkout."""
    services = compose["services"].values()
    own = {name for service in services for name in service.get("env_file", ())}
    mounted = (volume.split(":")[0] for service in services for volume in service.get("volumes", ()))
    own |= {name.removeprefix("./") for name in mounted if name.startswith("./")} - {"haproxy.cfg"}
    assert own == {"concord.env", "postgres.env", "roles.json", "secrets.toml"}
    left_out = (deploy / "Dockerfile.dockerignore").read_text("utf-8").split("\n")
    anywhere = [line.removeprefix("**/") for line in left_out if line.startswith("**/")]
    assert {name for name in own if any(fnmatch.fnmatch(name, pattern) for pattern in anywhere)} == own
    assert {".venv", ".git", "**/.concord"} <= set(left_out)
    no_commit = (repository / ".gitignore").read_text("utf-8").split("\n")
    paths = (f"/core/jobs/deploy/{name}" for name in own)
    assert all(any(fnmatch.fnmatch(path, pattern) for pattern in no_commit) for path in paths)
