"""Who may do what; whatever they did is logged.

Everybody may read; a task that changes something, or shows more than a viewer may see, says the least role it needs,
and every change is logged.  Roles, and that somebody at a screen has a name, are checked here, below the screens: a
button that is off is a courtesy, not a lock.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from core.errors import AccessError, UsageError
from core.people import Role
from core.store.log import Action
from core.store.store import Store

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
                raise AccessError("Enter your name first. Changes carry a name, and nothing was changed.")
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


def given_reason(reason: str) -> str:
    """The reason for a decision, trimmed.  UsageError without one."""
    if not (trimmed := reason.strip()):
        raise UsageError("A decision needs a reason for those who read it later.")
    return trimmed
