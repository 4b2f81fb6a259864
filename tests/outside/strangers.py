"""What comes from strangers: an endpoint that writes down what it was sent, a project's file with other rows."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "sk-of-this-installation"
REPLY = {"choices": [{"message": {"content": "Score: 3\nFair."}, "finish_reason": "stop"}], "usage": {}}
Tables = dict[str, list[dict[str, Any]]]


def write(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """A JSONL file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@dataclass
class Endpoint:
    """What came in: (Host, Authorization, body) of every request, under whatever name it was asked for."""

    port: int
    seen: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [key for _, key, _ in self.seen]


@contextmanager
def listening() -> Iterator[Endpoint]:
    """A server on loopback that answers every prompt with a 3."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            endpoint.seen.append((self.headers["Host"], self.headers.get("Authorization", ""), body))
            answer = json.dumps(REPLY).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            """Nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield endpoint
        server.shutdown()


def bend(source: Path, target: Path, change: Callable[[Tables], object]) -> Path:
    """A project's file with other rows, whose manifest fits: nothing but the format itself is needed for it."""
    with zipfile.ZipFile(source) as old:
        manifest = json.loads(old.read("manifest.json"))
        lines = {file["table"]: old.read(file["name"]).splitlines() for file in manifest["files"]}
    tables: Tables = {name: list(map(json.loads, rows)) for name, rows in lines.items()}
    change(tables)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for file in manifest["files"]:
            rows = tables[file["table"]]
            data = "".join(json.dumps(row) + "\n" for row in rows).encode()
            file |= {"rows": len(rows), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            new.writestr(file["name"], data)
        new.writestr("manifest.json", json.dumps(manifest))
    return target
