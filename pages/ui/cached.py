"""Process-wide cache of results and figures, shared between sessions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

import streamlit as st

T = TypeVar("T")


def cached(key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """Return `make()`, computed once per process for `key`, which must identify the value and all its inputs."""
    return cast(T, _cached(key, make))


@st.cache_resource(max_entries=512, show_spinner="Computing …")
def _cached(key: tuple[Hashable, ...], _make: Callable[[], Any]) -> Any:
    return _make()
