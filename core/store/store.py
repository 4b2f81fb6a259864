"""Read and write Concord's records in a database. SQL occurs only in this folder.

=============  ======================================================  =====================
attribute      content                                                 module
=============  ======================================================  =====================
``projects``   names that group golden sets, criteria and runs         `core.store.projects`
``goldens``    golden sets by content digest                           `core.store.projects`
``criteria``   criteria, edits, their alignment in each run            `core.store.projects`
``judges``     scores of the judges of a project, with replies         `core.store.projects`
``runs``       requests of runs and their progress                     `core.store.runs`
``results``    documents and scores of runs                            `core.store.runs`
``replies``    replies of endpoints by request key (a `ReplyStore`)    `core.store.runs`
``blocks``     scores of metrics by the content of their items         `core.store.runs`
``workers``    which workers are alive                                 `core.store.runs`
``upkeep``     storage use, and deletion of old replies                `core.store.runs`
``labels``     labels that raters save in the app                      `core.store.labels`
``drafts``     texts that users typed and have not saved               `core.store.labels`
``events``     the log of actions                                      `core.store.log`
``transfers``  projects as rows, for export and import                 `core.store.transfer`
=============  ======================================================  =====================

A `Store` belongs to one user (`actor`); `acting` returns a store of another user on the same database.

Every method is one transaction, committed completely or not at all, and retried after a lost connection
(`core.store.database`). `together` runs several methods in one transaction. Errors are `core.errors.StoreError` and its
subclasses.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from core.errors import AccessError
from core.project_records import LOCAL, Actor, Role
from core.store.database import Database, Together
from core.store.labels import Drafts, LabelStore
from core.store.log import Action, Events
from core.store.projects import Goldens, Judges, KeptCriteria, Projects
from core.store.runs import MetricBlocks, Replies, Results, Runs, Upkeep, Workers
from core.store.transfer import Transfers

T = TypeVar("T")


class Store:
    """Thread-safe access to a database on behalf of one user. Open one per process (`core.projects.open_store`)."""

    def __init__(self, url: str) -> None:
        """Open ``sqlite:///path`` or ``postgresql://…``, and create the tables if new.  StoreError if that fails."""
        self._database = Database(url)
        self.projects = Projects(self._database)
        self.goldens = Goldens(self._database)
        self.criteria = KeptCriteria(self._database)
        self.runs = Runs(self._database)
        self.results = Results(self._database)
        self.replies = Replies(self._database)
        self.blocks = MetricBlocks(self._database)
        self.judges = Judges(self._database)
        self.labels = LabelStore(self._database)
        self.drafts = Drafts(self._database)
        self.events = Events(self._database)
        self.transfers = Transfers(self._database)
        self.upkeep = Upkeep(self._database)
        self._together = Together(self._database)
        self.actor = LOCAL
        self.workers = Workers(self._database)

    def together(self, writes: Callable[[], T]) -> T:
        """Run `writes` as one transaction, even if it writes to several parts of the store.

        `writes` must not have other effects, because a retry runs it again.
        """
        return self._together.do(writes)

    def acting(self, actor: Actor) -> Self:
        """Return a copy of this store for another user, `actor`. Both stores share all connections."""
        other = copy.copy(self)
        other.actor = actor
        return other

    def call_when_waiting(self, say: Callable[[], None]) -> None:
        """Set the function that a thread calls when it waits for the database."""
        self._database.say_waiting = say

    def close(self) -> None:
        """Release all connections. Safe to call twice."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


# ── roles and the log ─────────────────────────────────────────────────────────────────────────────────────────────────

P = ParamSpec("P")
R = TypeVar("R")
Task = Callable[Concatenate[Store, P], R]

_LONGEST = 120


def requires(role: Role, does: str = "", *, reads: bool = False) -> Callable[[Task[P, R]], Task[P, R]]:
    """Decorate a function so that only users with at least `role` can call it.

    The first argument of the function must be the store of the acting user (`Store.acting`). The function then raises
    AccessError for a user with a lower role, or without a name.

    Args:
        role: Lowest role that may call the function.
        does: What the user does, such as "started a calibration". If given, each call is logged.
        reads: The function changes nothing, so the user needs no name.
    """

    def guard(task: Task[P, R]) -> Task[P, R]:
        signature = inspect.signature(task)

        @wraps(task)
        def guarded(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if store.actor.is_unnamed and not reads:
                raise AccessError("Enter your name first. Every change is recorded with a name. Nothing was changed.")
            if not store.actor.may(role):
                who = store.actor.name or "You"
                raise AccessError(
                    f"{who} can't do this ({task.__name__.replace('_', ' ')}). The action requires the role {role}, "
                    f"but the current role is {store.actor.role}. Ask an admin of this installation."
                )
            result = task(store, *args, **kwargs)
            if does:
                _log(store, does, signature.bind(store, *args, **kwargs).arguments, result)
            return result

        return guarded

    return guard


def _log(store: Store, does: str, arguments: Mapping[str, Any], result: object) -> None:
    """Log an action in its project: the project named, or that of its request, result or run."""
    request = arguments.get("request")
    named = (arguments.get("project_id"), getattr(request, "project_id", None), getattr(result, "project_id", None))
    project_id = next((each for each in named if isinstance(each, str)), None)
    if project_id is None:
        if "run_id" not in arguments:
            return
        project_id = store.runs.get(arguments["run_id"]).project_id
    about = {name: value for name, value in arguments.items() if isinstance(value, str) and len(value) <= _LONGEST}
    about.pop("project_id", None)
    subject = result if isinstance(result, str) and len(result) <= _LONGEST else about.get("run_id", "")
    about |= {} if request is None else {"aspect": request.aspect}
    store.events.add(project_id, Action(does, about, subject=subject), store.actor)
