"""What the SDK raises → our errors: messages name the endpoint, the model and the way out, never key or prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import openai

from core.errors import (
    AuthError,
    BadReplyError,
    ConcordError,
    EndpointDownError,
    ModelNotFoundError,
    ProviderError,
    RateLimitError,
)
from core.providers.client import NotHttpError, NotTlsError, RedirectedError, in_our_words
from core.providers.completions import Request
from core.providers.pace import wait_asked_for
from core.providers.wire import NotACompletionError
from core.secret_values import hide

PER_REQUEST_CODES = frozenset({"context_length_exceeded", "content_filter", "string_above_max_length"})
_REFUSES = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot|can ?not|can't|must|only|invalid|"
    r"incompatible|deprecated|disabled|not enabled|removed|not accept",
    re.IGNORECASE,
)
_NO_QUOTA = re.compile(r"insufficient.quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)
_ECHO_WINDOW = 20
_ECHOED_KEY = 6
_DETAIL_LENGTH = 200


def as_provider_error(
    error: Exception, *, endpoint: str, request: Request, has_key: bool, key_name: str = "OPENAI_API_KEY"
) -> ProviderError:
    """The `ProviderError` for whatever ended `request` (after the SDK's retries)."""
    where = f"{endpoint} (model {request.model!r})"
    if isinstance(error, openai.APIStatusError):
        return _as_status_error(error, where, request, has_key, key_name)
    if isinstance(error.__cause__, RedirectedError):
        return ProviderError(
            f"{where} redirects to {error.__cause__.target}, which is another place: nothing was sent there.",
            hint="If you trust that place, name its own URL.",
        )
    if isinstance(error.__cause__, NotHttpError):
        return BadReplyError(f"{where} does not speak HTTP.", hint="Is it https? Check the URL and its port.")
    if isinstance(error.__cause__, NotTlsError):
        return EndpointDownError(
            f"{where} cannot be reached over TLS.", hint="Is it http? Check the URL, its port and its certificate."
        )
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


def _as_status_error(
    error: openai.APIStatusError, where: str, request: Request, has_key: bool, key_name: str
) -> ProviderError:
    if error.status_code in (401, 403) and not used_up_quota(error):
        return _refused_key(where, error.status_code, has_key, key_name)
    if error.status_code == 404:
        return ModelNotFoundError(
            f"{where} answered 404: it knows no such model or path.",
            hint="Check the model's name and that the URL ends where the API starts (often /v1).",
        )
    if used_up_quota(error):
        return RateLimitError(
            f"{where}: the quota of this key is used up ({error.status_code}, insufficient_quota); waiting does not "
            "help.",
            hint="Add credit or raise the spending limit at the endpoint, or use another key, and start again: replies "
            "so far are kept.",
        )
    if error.status_code == 429:
        wait = wait_asked_for(error.response.headers)
        told = f" It asks for a wait of {wait:,.0f} s." if wait else ""
        return RateLimitError(
            f"{where} still answered 429 (too many requests) after waiting, with no other answer between.{told}",
            hint="Start again later, or set CONCORD_REQUESTS_PER_MINUTE to what the endpoint allows, or lower "
            "CONCORD_CONCURRENCY: replies so far are kept.",
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


def used_up_quota(error: Exception) -> bool:
    """Whether there is no credit left (often told as 429), which no waiting changes."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (402, 403, 429):
        return False
    return error.status_code == 402 or bool(_NO_QUOTA.search(f"{error.code} {error.type} {error.message}"))


def worth_another_try(error: Exception, *, known: bool) -> bool:
    """Whether the same request may be answered a little later; `x-should-retry` is obeyed.

    A web page, or what is not HTTP, from an endpoint that is not `known` to answer is a wrong URL.
    """
    if isinstance(error.__cause__, RedirectedError):
        return False
    if isinstance(error, openai.APIStatusError):
        told = error.response.headers.get("x-should-retry")
        return told == "true" or (told != "false" and (error.status_code in (408, 409) or error.status_code >= 500))
    wrong_url = isinstance(error.__cause__, NotHttpError | NotTlsError) or "HTML" in str(error)
    return known or not wrong_url


def may_be_about_extras(error: openai.APIStatusError) -> bool:
    """Whether asking for less may help: not where the key, the load or this one prompt is the trouble."""
    return error.status_code not in (401, 402, 403, 429) and not concerns_one_request(error)


def concerns_everything(error: Exception) -> bool:
    """Whether one such error is enough to stop: the key, the model, the path, the quota, or a redirect elsewhere."""
    wrong = openai.AuthenticationError | openai.PermissionDeniedError | openai.NotFoundError | openai.RateLimitError
    return isinstance(error, wrong) or used_up_quota(error) or isinstance(error.__cause__, RedirectedError)


def _refused_key(where: str, status: int, has_key: bool, key_name: str) -> AuthError:
    if has_key:
        return AuthError(
            f"{where} refused the key ({status}).", hint=f"Put a valid key for this endpoint into {key_name}."
        )
    return AuthError(f"{where} asks for a key ({status}).", hint=f"Set {key_name or 'OPENAI_API_KEY'}.")


def _detail(error: openai.APIStatusError, request: Request) -> str:
    """The server's own words, cut short, and left out when they repeat a piece of the prompt or a key."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str) or not message:
        return ""
    message = " ".join(message[:_DETAIL_LENGTH].split())
    prompt = " ".join(" ".join(part.content for part in request.messages).split())
    echoed = any(
        message[start : start + _ECHO_WINDOW] in prompt for start in range(max(1, len(message) - _ECHO_WINDOW + 1))
    )
    sent = [part for value in error.request.headers.values() for part in (value, value.rpartition(" ")[2])]
    echoed = echoed or any(len(part) >= _ECHOED_KEY and part in str(body) for part in sent)
    return "" if echoed else f" It says: {hide(message)}"


@contextmanager
def foreign_errors_hidden(url: str) -> Iterator[None]:
    """Turn whatever the SDK lets through, which may hold headers, into a connection error that says none of it."""
    try:
        yield
    except (openai.OpenAIError, ConcordError):
        raise
    except Exception as error:
        hidden = openai.APIConnectionError(request=httpx2.Request("POST", url))
        hidden.__cause__ = in_our_words(error)
    else:
        return
    raise hidden
