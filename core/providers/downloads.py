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
) -> Download:
    """Fetch `address` to `path` (replaced if it exists).

    `timeout` seconds bound the connection and each wait for more bytes, `max_seconds` a whole attempt.  `attempts`
    are made, `pause` · 2^k seconds apart, after faults that may pass.  DownloadError otherwise; its `offline` is True
    when no server could be reached at all.
    """
    for attempt in range(1, attempts + 1):
        try:
            with replacing(path) as part:
                fetch = _Fetch(address, part, max_bytes, timeout, time.monotonic() + max_seconds, progress)
                size_and_digest = fetch.run()
            return Download(address, path, *size_and_digest)
        except _PassingError as error:
            if attempt == attempts:
                raise DownloadError(str(error), address=address, offline=error.offline) from error
        except OSError as error:
            raise DownloadError(f"{path} cannot be written: {error.strerror or error}.", address=address) from error
        time.sleep(pause * 2 ** (attempt - 1))
    raise ValueError(f"attempts must be at least 1, not {attempts}")


@dataclass(frozen=True)
class _Fetch:
    """One attempt to bring `address` into the file `part`; `deadline` is on the monotonic clock."""

    address: str
    part: Path
    max_bytes: int
    timeout: float
    deadline: float
    progress: Progress | None

    def run(self) -> tuple[int, str]:
        """Size and sha256 of what came."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "concord"}
        try:
            with httpx2.Client(timeout=self.timeout, follow_redirects=False, headers=headers) as client:
                where = self.address
                for _ in range(MAX_REDIRECTS + 1):
                    url = self.allowed(where)
                    with client.stream("GET", url) as response:
                        if response.status_code in _MOVED and "location" in response.headers:
                            where = str(url.join(response.headers["location"]))
                            continue
                        self.refuse_status(response.status_code)
                        return self.keep(response)
        except httpx2.InvalidURL as error:
            raise self.error(f"is no usable address: {error}.") from error
        except httpx2.RequestError as error:
            raise self.passing(error) from error
        raise self.error(f"was redirected more than {MAX_REDIRECTS} times.")

    def error(self, words: str) -> DownloadError:
        return DownloadError(f"{self.address} {words}", address=self.address)

    def allowed(self, where: str) -> httpx2.URL:
        """`where` as a URL if it may be asked; a redirect's target is named as such."""
        url = httpx2.URL(where)
        if url.scheme == "https" and url.host:
            return url
        led = self.address if where == self.address else f"{self.address} leads to {where}"
        message = f"{led}, which is not https; only https addresses are fetched."
        raise DownloadError(message, address=self.address)

    def refuse_status(self, status: int) -> None:
        if status in _PASSING:
            raise _PassingError(f"{self.address} still answered {status} after the retries.", address=self.address)
        if status in (404, 410):
            raise self.error(f"answered {status}: the file is no longer there.")
        if status != 200:
            raise self.error(f"answered {status} instead of sending the file.")

    def keep(self, response: httpx2.Response) -> tuple[int, str]:
        """Stream the body into `part`; refuse what is too large or a web page, notice what is cut off."""
        expected = _length(response)
        self.bound(expected or 0)
        digest, n_bytes = hashlib.sha256(), 0
        with self.part.open("wb") as file:
            for chunk in response.iter_bytes(_CHUNK):
                if not n_bytes and _is_page(response, chunk):
                    raise self.error("sent a web page (HTML) in the place of a data file.")
                n_bytes += len(chunk)
                self.bound(n_bytes)
                if time.monotonic() > self.deadline:
                    raise self.error("sends too slowly; it was given up.")
                digest.update(chunk)
                file.write(chunk)
                if self.progress:
                    self.progress(n_bytes, expected)
        if expected is not None and n_bytes != expected:
            came = f"{self.address} was cut off: {n_bytes:,} of {expected:,} bytes came."
            raise _PassingError(came, address=self.address)
        if not n_bytes:
            raise self.error("sent an empty file.")
        return n_bytes, digest.hexdigest()

    def bound(self, n_bytes: int) -> None:
        if n_bytes > self.max_bytes:
            most = f"{self.max_bytes / 1e6:,.0f} MB"
            raise self.error(f"is larger than the {most} that this file may have; nothing was kept.")

    def passing(self, error: httpx2.RequestError) -> _PassingError:
        reason, offline = str(error) or type(error).__name__, False
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)):
            words, offline = f"cannot be reached ({reason})", True
        elif isinstance(error, httpx2.TimeoutException):
            words = "stopped sending; no more bytes came in time"
        else:
            words = f"was cut off ({reason})"
        return _PassingError(f"{self.address} {words}.", address=self.address, offline=offline)


def _length(response: httpx2.Response) -> int | None:
    """The size announced for the bytes as they will be kept; None when unknown or packed."""
    raw = response.headers.get("content-length", "")
    packed = response.headers.get("content-encoding", "identity") != "identity"
    return int(raw) if raw.isdecimal() and not packed else None


def _is_page(response: httpx2.Response, chunk: bytes) -> bool:
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        return True
    return chunk[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
