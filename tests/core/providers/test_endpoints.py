"""URLs of endpoints must not carry secrets."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.providers.endpoints import checked_base_url


@pytest.mark.parametrize(
    "url",
    ["http://me:hunter2@host/v1", "https://hunter2@host/v1", "https://host/v1?key=hunter2", "ftp://hunter2", "hunter2"],
)
def test_a_base_url_with_a_secret_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_base_url(url)
    assert "hunter2" not in str(caught.value)


def test_a_base_url_loses_its_last_slash() -> None:
    assert checked_base_url("http://127.0.0.1:8000/v1/") == "http://127.0.0.1:8000/v1"
