"""Host and Origin, header by header; `tests/browser/test_requests.py` asks a real server."""

from __future__ import annotations

import pytest

from pages.ui import origins
from pages.ui.origins import Allowed

PROXY = Allowed(frozenset({"concord.example.org", "*.lab.example"}), frozenset({"https://concord.example.org:8443"}))


@pytest.mark.parametrize(
    ("host", "taken"),
    [
        ("localhost", True),
        ("LocalHost.:8501", True),
        ("127.0.0.1:8501", True),
        ("127.8.0.1", True),
        ("[::1]:8501", True),
        ("concord.example.org", True),
        ("a.lab.example:80", True),
        ("lab.example", False),
        ("evil-lab.example", False),
        ("concord.example.org.evil.example", False),
        ("192.0.2.7", False),
        ("0.0.0.0:8501", False),
        ("", False),
        (":8501", False),
        ("localhost:port", False),
        ("localhost/evil.example", False),
        ("evil.example@localhost", False),
        ("localhost, evil.example", False),
        ("[::1", False),
    ],
)
def test_hosts(host: str, taken: bool) -> None:
    assert PROXY.takes_host(host) is taken


@pytest.mark.parametrize(
    ("origin", "host", "taken"),
    [
        ("http://localhost:8501", "localhost:8501", True),
        ("https://concord.example.org", "concord.example.org", True),
        ("https://concord.example.org:8443", "concord.example.org", True),
        ("http://localhost:3000", "localhost:8501", False),
        ("http://127.0.0.1:8501", "localhost:8501", False),
        ("https://concord.example.org", "localhost:8501", False),
        ("null", "localhost:8501", False),
        ("", "localhost:8501", False),
        ("chrome-extension://localhost:8501", "localhost:8501", False),
    ],
)
def test_origins(origin: str, host: str, taken: bool) -> None:
    assert PROXY.takes_origin(origin, host) is taken


def test_a_team_is_answered_where_signing_in_brings_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        origins, "auth_section", lambda: {"redirect_uri": "https://Concord.Example.org:8443/oauth2callback"}
    )
    allowed = origins.allowed_now()
    assert allowed.takes_host("concord.example.org:8443")
    assert allowed.takes_origin("https://concord.example.org:8443", "concord.example.org")
    assert not allowed.takes_host("other.example.org")
