"""Whether a server is there and has the model, before items are sent to it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2
import openai

from core.errors import ProviderError
from core.providers.base import Message, Request

if TYPE_CHECKING:
    from core.providers.openai_api import OpenAIProvider

PATIENCE = 20.0
"""Seconds that a server gets to say what it serves."""


def why_not_served(provider: OpenAIProvider, model: str) -> str:
    """Why `model` cannot be asked from this host, as far as can be told at no cost; "" where nothing speaks against it.

    Of an endpoint elsewhere it is enough that it answers.  A server on this very host, where asking is free, answers a
    word to the model where it does not list it.  Where there are several base URLs, one may be away.
    """
    if provider.access.also:
        return ""
    try:
        page = provider.call(
            lambda client: client.with_options(timeout=PATIENCE).get("/models", cast_to=httpx2.Response)
        )
    except openai.APIConnectionError:
        return f"{provider.base_url} cannot be reached. Start the server there, or let this host reach it."
    except openai.OpenAIError:
        page = None
    if not provider.on_this_host or (page is not None and model in _listed(page)):
        return ""
    try:
        provider.complete([Request(model, (Message("user", "Hello."),), 0.0, 1)])
    except ProviderError as error:
        return str(error)
    return ""


def _listed(page: httpx2.Response) -> set[str]:
    """The names in a list of models; none in what is no such list."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        return {str(each["id"]) for each in json.loads(page.content)["data"]}
    return set()
