"""Prices of tokens from the user's file, and URLs that must not carry secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import UsageError
from core.providers.endpoints import checked_base_url
from core.providers.prices import Price, load_prices


def test_prices_are_dollars_per_million(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('{"m": [2, 8.5]}', encoding="utf-8")
    assert load_prices(path) == {"m": Price(2.0, 8.5)}
    assert load_prices(path)["m"].cost(1_000_000, 2_000_000) == 2 + 17
    assert load_prices(None) == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"m": 2}', '{"m": [1]}', '{"m": [1, -1]}', '{"m": ["1", 2]}', '{"m": [NaN, 1]}']
)
def test_a_bad_price_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"CONCORD_PRICES.*prices\.json"):
        load_prices(path)


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
