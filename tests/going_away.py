"""A Postgres that goes away: a proxy on loopback in front of the real one that drops and refuses connections."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

COMMIT = re.compile(rb"COMMIT(?!TED)")  # of "READ COMMITTED" nothing is lost


class GoingAway:
    """Use as a context manager; `url` names the same database as the URL given, by way of the proxy."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (str(parts.hostname), int(parts.port or 5432))
        self._open: set[socket.socket] = set()
        self._muted: set[socket.socket] = set()
        """Lines to clients that are cut when the server next answers."""
        self._lock = threading.Lock()
        self._listener = self._listen(0)
        self._port = self._listener.getsockname()[1]
        who = f"{parts.username}@" if parts.username else ""
        self.url = f"{parts.scheme}://{who}127.0.0.1:{self._port}{parts.path}"
        self.lose_commit: Literal["", "before", "after"] = ""
        """Drops the connection of the next COMMIT, once: before the server gets it, or before its answer comes back."""

    def __enter__(self) -> Self:
        self._serve()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.go()

    def go(self) -> None:
        """Nobody gets in any more, and everybody inside is thrown out."""
        self._listener.close()
        with self._lock:
            gone, self._open = self._open, set()
        for line in gone:
            _end(line)

    def come_back(self) -> None:
        self._listener = self._listen(self._port)
        self._serve()

    def be_away(self, seconds: float) -> None:
        self.go()
        time.sleep(seconds)
        self.come_back()

    def be_away_meanwhile(self, seconds: float) -> threading.Thread:
        """`be_away`, begun at once, while the caller goes on; join the thread."""
        self.go()
        thread = threading.Timer(seconds, self.come_back)
        thread.start()
        return thread

    # ── threads ──────────────────────────────────────────────────────────────────────────────────────────────

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        listener.settimeout(0.05)  # a closed listener is noticed
        return listener

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                line, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            line.settimeout(None)
            server = socket.create_connection(self._server)
            with self._lock:
                self._open |= {line, server}
            threading.Thread(target=self._carry, args=(line, server, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(server, line, False), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, to_server: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if target in self._muted:
                    break
                if to_server and self.lose_commit and COMMIT.search(data):
                    when, self.lose_commit = self.lose_commit, ""
                    if when == "before":
                        break
                    self._muted.add(source)
                target.sendall(data)
        _end(source)
        if to_server:  # the server's last words are carried out first
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)
        else:
            _end(target)


def _end(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
