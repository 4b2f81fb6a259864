"""A file from the web to the disk: https only, bounded, whole or not at all.

`download` streams into a temporary file beside its destination and renames it when everything has come, so that an
interrupted download leaves nothing.  Redirects are followed by hand, because each has to lead to https again.  What
comes is never opened here except for its first bytes: a web page in the place of a data file is refused.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from core.errors import DownloadError
from core.files import replacing

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have come and the bytes expected (None where the server does not say)."""

MAX_REDIRECTS: Final = 5
_CHUNK = 64 * 1024
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOVED = frozenset({301, 302, 303, 307, 308})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class _PassingError(DownloadError):
    """Worth another attempt: no connection, a time-out, a cut-off body, a server's trouble."""


@dataclass(frozen=True)
class Download:
    """A file that came whole: the address asked for, where it lies, its size and its sha256 (hex)."""

    address: str
    path: Path
    n_bytes: int
    sha256: str


def download(
    address: str,
    path: Path,
    *,
    max_bytes: int,
    timeout: float = 30.0,
    max_seconds: float = 900.0,
    attempts: int = 3,
    pause: float = 0.5,
    progress: Progress | None = None,
    loopback_http: bool = False,
) -> Download:
    """Fetch `address` to `path` (replaced if it exists).

    `timeout` seconds bound the connection and each wait for more bytes, `max_seconds` a whole attempt.  `attempts`
    are made, `pause` · 2^k seconds apart, after faults that may pass.  `loopback_http` also allows plain http to this
    machine, for tests.  DownloadError otherwise; its `offline` is True when no server could be reached at all.
    """
    for attempt in range(1, attempts + 1):
        try:
            with replacing(path) as part:
                size_and_digest = _fetch(
                    address,
                    part,
                    max_bytes=max_bytes,
                    timeout=timeout,
                    deadline=time.monotonic() + max_seconds,
                    progress=progress,
                    loopback_http=loopback_http,
                )
            return Download(address, path, *size_and_digest)
        except _PassingError as error:
            if attempt == attempts:
                raise DownloadError(str(error), address=address, offline=error.offline) from error
        except OSError as error:
            raise DownloadError(f"{path} cannot be written: {error.strerror or error}.", address=address) from error
        time.sleep(pause * 2 ** (attempt - 1))
    raise ValueError(f"attempts must be at least 1, not {attempts}")


def _fetch(
    address: str,
    part: Path,
    *,
    max_bytes: int,
    timeout: float,
    deadline: float,
    progress: Progress | None,
    loopback_http: bool,
) -> tuple[int, str]:
    """Size and sha256 of what came."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "concord"}
    try:
        with httpx2.Client(timeout=timeout, follow_redirects=False, headers=headers) as client:
            where = address
            for _ in range(MAX_REDIRECTS + 1):
                url = _allowed(where, address, loopback_http)
                with client.stream("GET", url) as response:
                    if response.status_code in _MOVED and "location" in response.headers:
                        where = str(url.join(response.headers["location"]))
                        continue
                    _refuse_status(response.status_code, address)
                    return _keep(response, part, address, max_bytes=max_bytes, deadline=deadline, progress=progress)
    except httpx2.InvalidURL as error:
        raise DownloadError(f"{address} is no usable address: {error}.", address=address) from error
    except httpx2.RequestError as error:
        raise _as_passing(error, address) from error
    raise DownloadError(f"{address} was redirected more than {MAX_REDIRECTS} times.", address=address)


def _allowed(where: str, address: str, loopback_http: bool) -> httpx2.URL:
    """`where` as a URL if it may be asked; a redirect's target is named as such."""
    url = httpx2.URL(where)
    if url.scheme == "https" and url.host:
        return url
    if loopback_http and url.scheme == "http" and url.host in _LOOPBACK:
        return url
    led = f"{address} leads to {where}" if where != address else address
    raise DownloadError(f"{led}, which is not https; only https addresses are fetched.", address=address)


def _refuse_status(status: int, address: str) -> None:
    if status == 200:
        return
    if status in _PASSING:
        raise _PassingError(f"{address} still answered {status} after the retries.", address=address)
    if status in (404, 410):
        raise DownloadError(f"{address} answered {status}: the file is no longer there.", address=address)
    raise DownloadError(f"{address} answered {status} instead of sending the file.", address=address)


def _keep(
    response: httpx2.Response, part: Path, address: str, *, max_bytes: int, deadline: float, progress: Progress | None
) -> tuple[int, str]:
    """Stream the body into `part`; refuse what is too large or a web page, notice what is cut off."""
    expected = _length(response)
    if expected is not None and expected > max_bytes:
        raise _too_large(address, max_bytes)
    digest, n_bytes = hashlib.sha256(), 0
    with part.open("wb") as file:
        for chunk in response.iter_bytes(_CHUNK):
            if not n_bytes and _is_page(response, chunk):
                raise DownloadError(f"{address} sent a web page (HTML) in the place of a data file.", address=address)
            n_bytes += len(chunk)
            if n_bytes > max_bytes:
                raise _too_large(address, max_bytes)
            if time.monotonic() > deadline:
                raise DownloadError(f"{address} sends too slowly; it was given up.", address=address)
            digest.update(chunk)
            file.write(chunk)
            if progress:
                progress(n_bytes, expected)
    if expected is not None and n_bytes != expected:
        raise _PassingError(f"{address} was cut off: {n_bytes:,} of {expected:,} bytes came.", address=address)
    if not n_bytes:
        raise DownloadError(f"{address} sent an empty file.", address=address)
    return n_bytes, digest.hexdigest()


def _length(response: httpx2.Response) -> int | None:
    """The size announced for the bytes as they will be kept; None when unknown or packed."""
    raw = response.headers.get("content-length", "")
    packed = response.headers.get("content-encoding", "identity") != "identity"
    return int(raw) if raw.isdecimal() and not packed else None


def _is_page(response: httpx2.Response, chunk: bytes) -> bool:
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        return True
    return chunk[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))


def _too_large(address: str, max_bytes: int) -> DownloadError:
    return DownloadError(
        f"{address} is larger than the {max_bytes / 1e6:,.0f} MB that this file may have; nothing was kept.",
        address=address,
    )


def _as_passing(error: httpx2.RequestError, address: str) -> _PassingError:
    reason = str(error) or type(error).__name__
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)):
        return _PassingError(f"{address} cannot be reached ({reason}).", address=address, offline=True)
    if isinstance(error, httpx2.TimeoutException):
        return _PassingError(f"{address} stopped sending; no more bytes came in time.", address=address)
    return _PassingError(f"{address} was cut off ({reason}).", address=address)
