"""What the SDK raises → our errors: messages name the endpoint, the model and the way out, never key or prompt."""

from __future__ import annotations

import re

import httpx2
import openai

from core.errors import AuthError, BadReplyError, EndpointDownError, ModelNotFoundError, ProviderError, RateLimitError
from core.providers.base import Request
from core.providers.wire import NotACompletionError

PER_REQUEST_CODES = frozenset({"context_length_exceeded", "content_filter", "string_above_max_length"})
_REFUSES = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|not allowed", re.IGNORECASE)
_ECHO_WINDOW = 20
_DETAIL_LENGTH = 200


def as_provider_error(error: Exception, *, endpoint: str, request: Request, has_key: bool) -> ProviderError:
    """The `ProviderError` for whatever ended `request` (after the SDK's retries)."""
    where = f"{endpoint} (model {request.model!r})"
    if isinstance(error, openai.APIStatusError):
        return _as_status_error(error, where, request, has_key)
    if isinstance(error, NotACompletionError):
        return BadReplyError(
            f"{where} answered 200 with {error}, not with a completion.",
            hint="Check the URL: it should be an OpenAI-compatible API (often ending in /v1), not a web page.",
        )
    if isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout):
        return EndpointDownError(
            f"{where} did not answer in time.", hint="Check that it is not overloaded, then start again."
        )
    if isinstance(error, openai.APIConnectionError):
        return EndpointDownError(
            f"{where} cannot be reached.", hint="Check the URL and that the server runs, then start again."
        )
    return ProviderError(f"{where} failed: {type(error).__name__}.")


def _as_status_error(error: openai.APIStatusError, where: str, request: Request, has_key: bool) -> ProviderError:
    if error.status_code in (401, 403):
        return _refused_key(where, error.status_code, has_key)
    if error.status_code == 404:
        return ModelNotFoundError(
            f"{where} answered 404: it knows no such model or path.",
            hint="Check the model's name and that the URL ends where the API starts (often /v1).",
        )
    if error.status_code == 429:
        return RateLimitError(
            f"{where} still answered 429 (too many requests, or the quota is used up) after the retries.",
            hint="Wait or raise the quota, lower CONCORD_CONCURRENCY, and start again: replies so far are kept.",
        )
    if error.status_code >= 500:
        return EndpointDownError(
            f"{where} still answered {error.status_code} after the retries.",
            hint="The server has trouble of its own: look at its log, or start again later.",
        )
    return ProviderError(f"{where} refused the request ({error.status_code}).{_detail(error, request)}")


def concerns_one_request(error: Exception) -> bool:
    """Whether `error` is about this prompt alone (too long, filtered), so that the others may go on."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 413, 422):
        return False
    return error.code in PER_REQUEST_CODES or "context length" in str(error.message)


def refuses_parameter(error: openai.APIStatusError) -> bool:
    """Whether the endpoint says that it does not take some parameter or value (400, or 422 of stricter servers)."""
    return error.status_code in (400, 422) and not concerns_one_request(error) and bool(_REFUSES.search(error.message))


def may_be_about_extras(error: openai.APIStatusError) -> bool:
    """Whether asking for less may help: not where the key, the load or this one prompt is the trouble."""
    return error.status_code not in (401, 403, 429) and not concerns_one_request(error)


def concerns_everything(error: Exception) -> bool:
    """Whether one such error is enough to stop: the key, the model or the path is wrong."""
    return isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError | openai.NotFoundError)


def _refused_key(where: str, status: int, has_key: bool) -> AuthError:
    if has_key:
        return AuthError(
            f"{where} refused the key ({status}).", hint="Put a valid key for this endpoint into OPENAI_API_KEY."
        )
    return AuthError(f"{where} asks for a key ({status}).", hint="Set OPENAI_API_KEY.")


def _detail(error: openai.APIStatusError, request: Request) -> str:
    """The server's own words, cut short, and left out when they repeat a piece of the prompt."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str) or not message:
        return ""
    message = " ".join(message[:_DETAIL_LENGTH].split())
    prompt = " ".join(" ".join(part.content for part in request.messages).split())
    echoed = any(
        message[start : start + _ECHO_WINDOW] in prompt for start in range(max(1, len(message) - _ECHO_WINDOW + 1))
    )
    return "" if echoed else f" It says: {message}"
