"""Who may be asked, and who gets the key: passed by every judge on its way to an endpoint.

A judge that a person names here and now gets the key.  One that a file names gets it only where it may go anyway; what
came with a project asks nobody until a person says so (`core.projects.consent`).  Whoever makes a judge and says
nothing gets the careful gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.errors import ConsentError
from core.providers.endpoints import checked_base_url, trusted_with_the_key
from core.settings import Settings

KeyFor = Callable[[str, Settings], str | None]
"""(base URL, settings) → the key to send there, None for none; ConsentError where nothing at all may be sent."""


@dataclass(frozen=True, slots=True)
class Gate:
    """`key_for` decides on an endpoint; `files` says whether a spec may name any file of this machine."""

    key_for: KeyFor
    files: bool = True


def endpoint_of_file(base_url: str) -> tuple[str, bool]:
    """The one spelling of a base URL out of a file, and whether any installation's key may go there.

    ("", True) for none: OpenAI's own.  UsageError for what is no base URL.
    """
    return (checked_base_url(base_url), trusted_with_the_key(base_url, None)) if base_url else ("", True)


def _careful(base_url: str, settings: Settings) -> str | None:
    return settings.openai_api_key if trusted_with_the_key(base_url, settings.openai_base_url) else None


def _silent(base_url: str, settings: Settings) -> str | None:
    raise ConsentError(f"What {base_url} replied to this is not kept here, and looking at it sends nothing.", base_url)


NAMED = Gate(lambda base_url, settings: settings.openai_api_key)
"""For a judge that a person named here and now: in a command, in a form, in a call."""

CAREFUL = Gate(_careful)
"""For a judge out of a file."""

SILENT = Gate(_silent)
"""For looks at what is kept: nothing is sent anywhere."""
