"""Imported projects ask no endpoint until a person here has allowed it.

What came in a zip was written by somebody else: its runs name endpoints, and resuming one, or scoring anew with its
judge, would send texts there, and the key.  So every judge of an imported project is made behind a gate that knows
what people here have said of each endpoint.  They say it for a project and a base URL; it is kept in the store, is no
part of what a project hands on, and stands in the log.  Projects that were made here are not concerned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from core.errors import ConsentError, UsageError
from core.project_records import Run
from core.projects.roles import requires
from core.review.log import Action
from core.settings import Settings
from core.store.results import JUDGE, RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.judging.registry import Gate


REFUSED = (
    "Nothing was sent. This project was imported, and what came with it would send texts of its items to {endpoint} "
    '({models}). If you trust that endpoint, allow it: press "Allow" beside the run on the screen Runs, or run '
    "python -m core allow-endpoint PROJECT {endpoint}"
)


@dataclass(frozen=True, slots=True)
class NamedEndpoint:
    """An endpoint (base URL) that something in a project asks, with the models asked there."""

    endpoint: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedEndpoint(NamedEndpoint):
    """An endpoint with what was said of it.

    `trusted`: the key of this installation goes there once it is allowed (the endpoint of `OPENAI_BASE_URL`, OpenAI's
    own, this machine, those of the endpoint file); to any other only where a person says so as well.  `has_key`:
    there is a key, or a header, to send there.  `allowed` and `with_key` are what `by` said at `at`; "" and None where
    nobody has.
    """

    trusted: bool = False
    has_key: bool = False
    allowed: bool = False
    with_key: bool = False
    by: str = ""
    at: datetime | None = None


def endpoints_of_run(store: Store, settings: Settings, run_id: str) -> tuple[AskedEndpoint, ...]:
    """Every endpoint that the judges of this run ask, by URL; () for a run of a project that was made here."""
    run = store.runs.get(run_id)
    if store.projects.get(run.project_id).imported_at is None:
        return ()
    return _asked(store, settings, run.project_id, _specs_of(store, run))


def endpoints_of_project(store: Store, settings: Settings, project_id: str) -> tuple[AskedEndpoint, ...]:
    """Every endpoint that a run of an imported project asks, and every one that was allowed; () for one made here."""
    if store.projects.get(project_id).imported_at is None:
        return ()
    specs = {spec for run in store.runs.all(project_id) for spec in _specs_of(store, run)}
    return _asked(store, settings, project_id, specs, every=True)


@requires("reviewer")
def allow_endpoint(
    store: Store, settings: Settings, project_id: str, endpoint: str, *, with_key: bool = False
) -> AskedEndpoint:
    """Let an imported project ask `endpoint` (a base URL); returns what is now said of it.

    The key of this installation goes along where it may go anyway (`AskedEndpoint.trusted`), and elsewhere only
    `with_key`.  UsageError for what is no base URL, or for a project that was made here.
    """
    from core.providers.endpoints import checked_base_url
    from core.providers.installation import Installation

    if store.projects.get(project_id).imported_at is None:
        raise UsageError("This project was made here: its judges ask the endpoints that people here name.")
    base_url = checked_base_url(endpoint)
    with_key = with_key or Installation.of(settings).trusts(base_url)
    did = f"allowed this project to ask {base_url}, {'with' if with_key else 'without'} the key"

    def allow() -> None:
        store.consents.give(project_id, base_url, store.actor, with_key=with_key)
        store.events.add(project_id, Action(did, subject=base_url), store.actor)

    store.together(allow)
    (allowed,) = _asked(store, settings, project_id, [f"openai:-@{base_url}"])
    return allowed


def key_named(settings: Settings, base_url: str) -> str:
    """The environment variable whose key goes to `base_url` ("": the usual endpoint); "" for none.

    UsageError for what is no base URL, or for a faulty endpoint file.
    """
    from core.judging.registry import JudgeSpec, endpoint_of
    from core.providers.installation import Installation

    return Installation.of(settings).key_name(endpoint_of(JudgeSpec("openai", base_url=base_url), settings))


def gate_of(store: Store, run: Run, *, sends: bool = True) -> Gate:
    """The gate for the judges of a run: as people here allowed where a project was imported, else open.

    Not `sends`: for a look at what is kept; nothing is sent, whoever has allowed it.
    """
    from core.judging.registry import NAMED, SILENT, Gate

    whose = {run.project_id} | {store.runs.get(run_id).project_id for run_id in _judge_runs(run)}
    imported = [project_id for project_id in sorted(whose) if store.projects.get(project_id).imported_at is not None]

    def key_goes(base_url: str, settings: Settings) -> bool:
        goes = True
        for project_id in imported:
            consent = store.consents.all(project_id).get(base_url)
            if consent is None:
                endpoints = _asked(store, settings, project_id, _specs_of(store, run))
                models = ", ".join(endpoint.models[0] for endpoint in endpoints if endpoint.endpoint == base_url)
                raise ConsentError(REFUSED.format(endpoint=base_url, models=models or "its model"), base_url)
            goes = goes and consent.with_key
        return goes

    if not sends:
        return Gate(SILENT.key_goes, files=not imported)
    return Gate(key_goes, files=False) if imported else NAMED


def require_consent(store: Store, settings: Settings, run_id: str) -> None:
    """ConsentError where this run, or one with its judge, would ask an endpoint that nobody here has allowed."""
    for endpoint in endpoints_of_run(store, settings, run_id):
        if not endpoint.allowed:
            raise ConsentError(
                REFUSED.format(endpoint=endpoint.endpoint, models=", ".join(endpoint.models)), endpoint.endpoint
            )


def allow_named(store: Store, settings: Settings, project_id: str, spec: str) -> None:
    """Whoever types a judge into a form of an imported project and presses Start has allowed its endpoint."""
    if store.projects.get(project_id).imported_at is None:
        return
    for endpoint in _asked(store, settings, project_id, [spec]):
        if not endpoint.with_key:
            allow_endpoint(store, settings, project_id, endpoint.endpoint, with_key=True)


# ── what a run asks ──────────────────────────────────────────────────────────────────────────────────────────


def _judge_runs(run: Run) -> list[str]:
    """The run whose judge this one scores with, if it is another."""
    named = json.loads(run.request_json).get("run_id")
    return [named] if named and isinstance(named, str) else []


def _specs_of(store: Store, run: Run) -> set[str]:
    """Every judge spec in what is kept of a run, and of the run whose judge it scores with.

    Not only those that are asked as things stand: what is kept came from elsewhere, and a document that is read may say
    another one than the request.
    """
    from core.judging.registry import specs_in

    return {
        spec
        for source in (run, *(store.runs.get(run_id) for run_id in _judge_runs(run)))
        for text in _texts_of(store, source)
        if "openai:" in text or "\\u" in text  # a backslash may spell any letter
        for spec in specs_in(json.loads(text))
    } | set(specs_in(run.judge_spec))


def _texts_of(store: Store, run: Run) -> Iterator[str]:
    yield run.request_json
    yield from (document.body for name in (JUDGE, RESULT) if (document := store.results.document(run.run_id, name)))


def _asked(
    store: Store, settings: Settings, project_id: str, specs: Iterable[str], *, every: bool = False
) -> tuple[AskedEndpoint, ...]:
    """The endpoints of `specs` with what was said of them; with `every`, also allowed ones that none of them names."""
    from core.judging.registry import endpoint_of, parse_spec
    from core.providers.installation import Installation

    consents = store.consents.all(project_id)
    models: dict[str, set[str]] = {endpoint: set() for endpoint in consents} if every else {}
    for spec in specs:
        try:
            parsed = parse_spec(spec)
            if parsed.kind == "openai":
                models.setdefault(endpoint_of(parsed, settings), set()).add(parsed.model)
        except UsageError:
            continue  # of no known form: no judge is made of it either
    endpoints, here = [], Installation.of(settings)
    for endpoint, names in sorted(models.items()):
        known, consent = (here.trusts(endpoint), here.has_secrets(endpoint)), consents.get(endpoint)
        given = () if consent is None else (True, consent.with_key, consent.actor, consent.created_at)
        endpoints.append(AskedEndpoint(endpoint, tuple(sorted(names)), *known, *given))
    return tuple(endpoints)
