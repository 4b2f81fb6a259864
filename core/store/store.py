"""The face of the store: records in, records out; no SQL leaves the folder.

=============  ======================================================  =====================
part           holds                                                   module
=============  ======================================================  =====================
``projects``   names over golden sets, criteria and runs               `core.store.projects`
``goldens``    golden sets by content digest                           `core.store.projects`
``criteria``   criteria, edits, their alignment in each run            `core.store.projects`
``runs``       what was asked for and where it stands                  `core.store.runs`
``results``    documents and scores of runs                            `core.store.runs`
``replies``    replies of endpoints by request key (a `ReplyStore`)    `core.store.runs`
``blocks``     numbers of metrics by the content of their items        `core.store.runs`
``judges``     scores of the judges of a project, with replies         `core.store.projects`
``labels``     labels that people give in the app                      `core.store.labels`
``drafts``     texts that people type and have not saved yet           `core.store.labels`
``events``     the log of what people did                              `core.store.log`
``transfers``  a project whole: out as rows, in as rows                `core.store.transfer`
``workers``    who is alive                                            `core.store.runs`
=============  ======================================================  =====================

`actor` is who acts through this handle; `acting` gives another person a handle on the same database.

Every method is one transaction: done whole or not at all, and done again where the connection was lost in it
(`core.store.database`); `together` makes one of several.  Errors are `core.errors.StoreError` and its children.
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
    """One per process and database (`core.projects.open_store`); thread-safe."""

    def __init__(self, url: str) -> None:
        """Open ``sqlite:///path`` or ``postgresql://…``, making the tables of a new one.  StoreError otherwise."""
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
        """What `writes` does by several parts as one transaction; it may be called again, so it does nothing else."""
        return self._together.do(writes)

    def acting(self, actor: Actor) -> Self:
        """The same store in the hands of `actor`; shares all connections, costs nothing."""
        other = copy.copy(self)
        other.actor = actor
        return other

    def say_waiting_by(self, say: Callable[[], None]) -> None:
        """`say` is called, in the thread that waits, whenever the database is away and has to be waited for."""
        self._database.say_waiting = say

    def close(self) -> None:
        """Release connections.  Safe to call twice."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


# ── who may do what, and the log of it ────────────────────────────────────────────────────────────────────────────────

P = ParamSpec("P")
R = TypeVar("R")
Task = Callable[Concatenate[Store, P], R]

_LONGEST = 120


def requires(role: Role, does: str = "", *, reads: bool = False) -> Callable[[Task[P, R]], Task[P, R]]:
    """Let only people of at least `role` call a task; with `does` ("started a calibration") write it to the log.

    A task that only `reads` needs no name.
    The task's first argument is the store in the hands of whoever acts (`Store.acting`).  AccessError otherwise.
    """

    def guard(task: Task[P, R]) -> Task[P, R]:
        signature = inspect.signature(task)

        @wraps(task)
        def guarded(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if store.actor.is_unnamed and not reads:
                raise AccessError("Enter your name first. Changes carry a name; nothing was changed.")
            if not store.actor.may(role):
                who = store.actor.name or "You"
                raise AccessError(
                    f"{who} may not do this ({task.__name__.replace('_', ' ')}): it needs the role {role}, "
                    f"and the role here is {store.actor.role}. Ask an admin of this installation."
                )
            result = task(store, *args, **kwargs)
            if does:
                _log(store, does, signature.bind(store, *args, **kwargs).arguments, result)
            return result

        return guarded

    return guard


def _log(store: Store, does: str, arguments: Mapping[str, Any], result: object) -> None:
    """Write an action to the log of its project: the one named, or that of its request, of its run, or just made."""
    request, run_id = arguments.get("request"), arguments.get("run_id")
    named = (getattr(holder, "project_id", None) for holder in (request, result))
    project_id = next((each for each in (arguments.get("project_id"), *named) if isinstance(each, str)), None)
    if project_id is None and isinstance(run_id, str):
        project_id = store.runs.get(run_id).project_id
    if project_id is None:
        return
    about = {name: value for name, value in arguments.items() if isinstance(value, str) and len(value) <= _LONGEST}
    about.pop("project_id", None)
    subject = result if isinstance(result, str) and len(result) <= _LONGEST else about.get("run_id", "")
    about |= {} if request is None else {"aspect": request.aspect}
    store.events.add(project_id, Action(does, about, subject=subject), store.actor)
