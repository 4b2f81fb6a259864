"""The store of this process."""

from __future__ import annotations

import threading

from core.jobs.places import store_url
from core.settings import Settings
from core.store.store import Store

_lock = threading.Lock()
_stores: dict[str, Store] = {}


def open_store(settings: Settings) -> Store:
    """The store that `settings` name: one per process, made and migrated at the first call.

    StoreError when it cannot be opened or was written by a newer Concord.
    """
    url = store_url(settings)
    with _lock:
        if url not in _stores:
            _stores[url] = Store(url)
        return _stores[url]
