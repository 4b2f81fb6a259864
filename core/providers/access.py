"""How an endpoint is reached, beside its URL and its key: headers, proxy, further URLs, and Azure's own way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

Balance = Literal["least busy", "round robin"]


@dataclass(frozen=True, slots=True)
class Access:
    """What this installation says of how an endpoint is reached, with the values of its environment variables.

    `also` are further base URLs of the same judge, taken in turns as `balance` says.  With an `api_version` the
    endpoint is Azure's: the key goes into the header `api-key`, and the path names the `deployment` ("": the model).
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    organization: str = ""
    project: str = ""
    proxy: str = field(default="", repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    balance: Balance = "least busy"
    api_version: str = ""
    deployment: str = ""

    def path(self, model: str) -> str:
        """Where completions of `model` are asked for, beneath the base URL."""
        if not self.api_version:
            return "/chat/completions"
        return f"/openai/deployments/{quote(self.deployment or model, safe='')}/chat/completions"


def endpoint_name(base_url: str, extra_body: Mapping[str, Any]) -> str:
    """What replies of the endpoint are kept under: its URL, and what every request says beside its own words."""
    name = base_url.rstrip("/")
    return f"{name} with {json.dumps(extra_body, sort_keys=True)}" if extra_body else name
