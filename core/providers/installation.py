"""Decide what this installation sends to which endpoint, from its endpoint file and the environment.

This is the only place that joins a host with the name of its key. A judge file, a zip or an upload has no say. A host
in the file is sent the key that the file names for it, and no other. Any other host is treated as if there were no
file. The exception: an OPENAI_API_KEY that the file gives to a host goes only there and to the environment's own host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import AuthError, UsageError
from core.providers.endpoints import OPENAI_URL, place_of, trusted_with_the_key
from core.providers.pace import RequestLimits
from core.providers.prices import Price, list_price
from core.secret_values import remember
from core.settings import Settings, variable

if TYPE_CHECKING:
    from core.providers.endpoint_file import EndpointFile, EndpointSettings

OPENAI_KEY = "OPENAI_API_KEY"
FILE_NAME = "endpoints.yaml"
_OF_SETTINGS = ("concurrency", "requests_per_minute", "tokens_per_minute")
_LIMITS = {*_OF_SETTINGS, "timeout", "retries"}


@dataclass(frozen=True)
class Installation:
    settings: Settings
    file: EndpointFile | None

    @classmethod
    def of(cls, settings: Settings) -> Installation:
        """With the file that `CONCORD_ENDPOINTS` names, or the one in `CONCORD_HOME`.  UsageError for a faulty one."""
        path = settings.endpoints or settings.home / FILE_NAME
        if settings.endpoints is None and not path.is_file():
            return cls(settings, None)
        from core.providers.endpoint_file import read_endpoint_file

        return cls(settings, read_endpoint_file(path))

    def entry(self, base_url: str) -> EndpointSettings | None:
        """What the file says of the longest base URL that `base_url` is or lies beneath."""
        entries = self.file.endpoints if self.file else {}
        named = [url for url in entries if base_url == url or base_url.startswith(f"{url}/")]
        return entries[max(named, key=len)] if named else None

    def trusts(self, base_url: str) -> bool:
        """Whether keys of this installation may go to an endpoint that nobody has named here and now."""
        return self.entry(base_url) is not None or trusted_with_the_key(base_url, self.settings.openai_base_url)

    def key_name(self, base_url: str) -> str:
        """The environment variable whose value is the key for `base_url`; "" without one."""
        named, usual = self.entry(base_url), OPENAI_KEY if self.settings.openai_api_key else ""
        if named and named.key:
            return named.key
        given_away = self.file is not None and any(entry.key == OPENAI_KEY for entry in self.file.endpoints.values())
        if not named and not given_away:
            return usual
        of_environment = place_of(base_url) == place_of(self.settings.openai_base_url or OPENAI_URL)
        return usual if of_environment else ""

    def key(self, base_url: str) -> str | None:
        """The key for `base_url`.  AuthError if its variable is not set."""
        name = self.key_name(base_url)
        return self._value(name, base_url) if name else None

    def headers(self, base_url: str) -> Mapping[str, str]:
        """The headers that every request to `base_url` has, filled with their variables.  AuthError as `key`."""
        named = self.entry(base_url)
        if named is None:
            return {}
        from core.providers.endpoint_file import VARIABLE

        return {
            name: VARIABLE.sub(lambda match: self._value(match[1] or match[2], base_url), text)
            for name, text in named.headers.items()
        }

    def extra_body(self, base_url: str) -> Mapping[str, Any]:
        """What every request to `base_url` says in addition to its own words."""
        named = self.entry(base_url)
        return named.extra_body if named else {}

    def limits(self, base_url: str) -> RequestLimits:
        """Time, retries and pace for `base_url`."""
        named, usual = self.entry(base_url), self.settings
        own = named.model_dump(include=_LIMITS, exclude_none=True) if named else {}
        return RequestLimits(**{name: getattr(usual, name) for name in _OF_SETTINGS} | own)

    def price(self, base_url: str, model: str) -> Price | None:
        """What `model` costs at `base_url`; None where nobody says."""
        named = self.entry(base_url)
        own = (named.prices if named else {}).get(model)
        anywhere = (self.file.prices if self.file else {}).get(model)
        return own or anywhere or list_price(base_url, model)

    def _value(self, name: str, base_url: str) -> str:
        """The value of an environment variable: a line of plain ASCII."""
        value = (self.settings.openai_api_key or "") if name == OPENAI_KEY else variable(name)
        remember(value)
        if not value:
            raise AuthError(
                f"The endpoint file names the environment variable {name} for {base_url}, and it is not set.",
                hint=f"Set {name} where Concord and its worker run.",
            )
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"The environment variable {name} holds what no header may: a line break or odd letters.")
        return value
