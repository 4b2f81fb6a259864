"""Keys in what is printed or kept."""

from __future__ import annotations

import pytest

from core import errors
from core.errors import hide, register_secret


@pytest.fixture(autouse=True)
def nothing_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_sent", set[str]())


@pytest.mark.parametrize("sent", ["sk-canary0123", "sk-canary0123456789abcdef/tail"])
def test_a_sent_value_that_is_part_of_a_key_or_holds_one_leaves_no_rest(sent: str) -> None:
    register_secret(sent)
    said = hide("it said sk-canary0123456789abcdef/tail and sk-canary0123456789abcdef.")
    assert "0123" not in said
    assert "456789" not in said
    assert said.startswith("it said [removed]")
    assert said.endswith("and [removed].")


def test_what_is_no_key_stays() -> None:
    register_secret("sk-canary0123")
    assert hide("a plain sentence, 4/5 and key words") == "a plain sentence, 4/5 and key words"
