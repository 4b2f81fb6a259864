"""Download public files over HTTPS, and verify their hashes."""

from __future__ import annotations

from pathlib import Path

from core.errors import DownloadError

ATTEMPTS = 3
"""Attempts to download from one address."""


def download(address: str, path: Path, sha256: str | None = None, *, timeout: float = 30.0) -> Path:
    """Download `address` to `path`. If the download fails, `path` stays unchanged.

    Raises DownloadError if the address is not HTTPS or cannot be reached, or if the file does not match `sha256`.
    """
    if not address.startswith("https://"):
        raise DownloadError(f"{address} isn't an https address. Only https downloads are allowed.")
    import pooch
    import requests

    registry = {path.name: None if sha256 is None else f"sha256:{sha256}"}
    source = pooch.create(path.parent, "", registry=registry, urls={path.name: address}, retry_if_failed=ATTEMPTS - 1)
    try:
        return Path(source.fetch(path.name, downloader=pooch.HTTPDownloader(timeout=timeout)))
    except requests.HTTPError as error:
        status = "an error" if error.response is None else error.response.status_code
        raise DownloadError(f"{address} returned {status} instead of the file.") from error
    except requests.RequestException as error:
        raise DownloadError(f"Concord can't reach {address} ({type(error).__name__}).") from error
    except ValueError as error:  # pooch raises it for a wrong hash
        raise DownloadError(f"{address} isn't the expected file: its SHA-256 hash differs.") from error
    except OSError as error:
        raise DownloadError(f"Concord can't write {path}: {error.strerror or error}.") from error
