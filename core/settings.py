"""Read settings from the environment, and tune the process. No other module reads `os.environ`.

| variable | default | meaning |
| --- | --- | --- |
| `CONCORD_HOME` | `.concord` | folder of the database, cached replies and results, readable by its owner only |
| `CONCORD_DATABASE_URL` | SQLite in `CONCORD_HOME` | Postgres URL, to share one database between hosts |
| `CONCORD_WORKER` | `auto` | `auto`: the app starts a worker; `external`: you run workers yourself |
| `CONCORD_WORKER_ID` | host name | name of this worker; two running workers need different names |
| `CONCORD_LOCAL_MODELS` | none | models that a judge file may load: `ID`, `ID@REVISION` or folders, comma-separated |
| `CONCORD_RAY` | none | Ray cluster that reads hidden states: `auto`, or `HOST:PORT` of its head |
| `CONCORD_CONCURRENCY` | `64` | most requests in flight per endpoint |
| `CONCORD_MAX_TOKENS` | `512` | longest reply of a judge without a judge file; thinking gets extra room |
| `CONCORD_REASONING_EFFORT` | the model's | how long a judge thinks: `low`, `medium`, `high`, … |
| `CONCORD_ENDPOINTS` | `endpoints.yaml` in `CONCORD_HOME` | YAML file with settings and prices per endpoint |
| `CONCORD_MAX_UPLOAD_MB` | `200` | largest golden set file; archives may unpack to 32 MB plus 100 times their size |
| `CONCORD_DEMO` | `on` | `on`: a new database starts with the demo project |
| `CONCORD_ROLES` | none | JSON file: e-mail address → viewer, annotator, reviewer or admin; `*` for all others |
| `OPENAI_API_KEY` | none | key for OpenAI-compatible endpoints; never stored, logged or shown |
| `OPENAI_BASE_URL` | OpenAI's | default endpoint of `openai:MODEL` |
"""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from core.errors import UsageError
from core.project_records import ROLES, Role


@dataclass(frozen=True)
class Settings:
    """Settings of this installation. `Settings.from_environment()` reads them."""

    home: Path = Path(".concord")
    database_url: str = ""
    worker: Literal["auto", "external"] = "auto"
    worker_id: str = ""
    local_models: tuple[str, ...] = ()
    ray: str = ""
    concurrency: int = 64
    max_tokens: int | None = None
    reasoning_effort: str = ""
    endpoints: Path | None = None
    max_upload_mb: int = 200
    demo: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict)
    roles_file: str = ""
    openai_api_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Return the settings in `environ`, or in the environment of the process if it is None.

        Raises UsageError, which names the variable, for an invalid value.
        """
        env = os.environ if environ is None else environ
        home = home_of(env)
        given: dict[str, Any] = {"home": home, "worker_id": socket.gethostname(), "demo": True}
        given["database_url"] = f"sqlite:///{home / 'concord.sqlite'}"
        for name, hint in get_type_hints(cls).items():
            variable = _VARIABLES.get(name, f"CONCORD_{name.upper()}")
            raw = env.get(variable)
            if not raw or name == "home":
                continue
            if name in _READERS:
                given[name] = _READERS[name](raw, variable)
            elif get_origin(hint) is Literal:
                given[name] = _one_of(raw, variable, get_args(hint))
            else:
                given[name] = _number(raw, variable) if hint in (int, int | None) else raw
        return cls(**given)

    def role_of(self, subject: str) -> Role:
        """Return the role of a user by e-mail address, ignoring case. By default, unknown users are viewers."""
        return self.roles.get(subject.strip().lower(), self.roles.get("*", "viewer"))


def variable(name: str) -> str:
    """Return the value of an environment variable; "" if it is not set."""
    return os.environ.get(name, "").strip()


def home_of(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the database, caches and results."""
    env = os.environ if environ is None else environ
    return Path(env.get("CONCORD_HOME") or ".concord").expanduser().absolute()


def _listed(raw: str, where: str = "") -> tuple[str, ...]:
    """Split at commas, and trim each part."""
    return tuple(word.strip() for word in raw.split(",") if word.strip())


def ray_address(raw: str, where: str) -> str:
    """Return the trimmed address of a Ray cluster; "" means no cluster.

    Raises UsageError for anything other than "auto", HOST:PORT or "". `where` names the option or variable in the
    message.
    """
    address = raw.strip()
    host, _, port = address.rpartition(":")
    if address in ("", "auto") or (host and port.isdigit() and "/" not in address):
        return address
    raise UsageError(
        f"{where} must be 'auto' or the HOST:PORT address of a Ray head node (default port: 6379), not {raw!r}."
    )


def _roles(file: str, where: str) -> Mapping[str, Role]:
    """Read a file of identity (lower case) → role.  UsageError names the problem."""
    path = Path(file).expanduser()
    try:
        roles = dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f'{where}: {path} must be a JSON object such as {{"ann@example.org": "reviewer"}}: {error}'
        ) from error
    for subject, role in roles.items():
        if role not in ROLES:
            raise UsageError(
                f"{where}: {path} assigns the unknown role {role!r} to {subject!r}. Use one of: {', '.join(ROLES)}."
            )
    return {subject.strip().lower(): role for subject, role in roles.items()}


def _one_of(raw: str, where: str, allowed: tuple[str, ...]) -> str:
    if raw not in allowed:
        raise UsageError(f"{where} must be {' or '.join(map(repr, allowed))}, not {raw!r}.")
    return raw


def _number(raw: str, where: str) -> int:
    if not raw.isdigit() or int(raw) < 1:
        raise UsageError(f"{where} must be a whole number of at least 1, not {raw!r}.")
    return int(raw)


_VARIABLES = {
    "roles_file": "CONCORD_ROLES",
    "openai_api_key": "OPENAI_API_KEY",
    "openai_base_url": "OPENAI_BASE_URL",
}
"""Field → variable, if that is not CONCORD_ and the field's name."""
_READERS: dict[str, Callable[[str, str], Any]] = {
    "local_models": _listed,
    "ray": ray_address,
    "endpoints": lambda raw, where: Path(raw).expanduser().absolute(),
    "demo": lambda raw, where: _one_of(raw, where, ("on", "off")) == "on",
    "roles": _roles,
}
"""Field → function that parses the variable's text and name, if the field's type is not enough."""


def tune_garbage_collector() -> None:
    """Make Python's cyclic garbage collector run less often, and skip all objects that exist now."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)  # with 700, a third of the time to read a large table
