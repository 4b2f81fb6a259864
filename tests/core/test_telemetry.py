"""What those who watch see: spans and counts of runs and calls, log lines; never what a run works on."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core import telemetry
from core.errors import GoldenError, StoreError

SECRET = "the judged text itself"


class Watched:
    """What was sent: spans, and the last value of each count by its attributes."""

    def __init__(self) -> None:
        self.spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self.spans))
        telemetry.watch_by(traces.get_tracer("t"), MeterProvider([self._reader]).get_meter("t"))

    def values(self, name: str) -> dict[tuple[Any, ...], float]:
        data = self._reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        points: list[Any] = [point for metric in metrics if metric.name == name for point in metric.data.data_points]
        return {tuple(point.attributes.values()): point.value for point in points}

    @property
    def everything(self) -> str:
        return str([(span.name, span.attributes, span.status.description, span.events) for span in self._finished])

    @property
    def _finished(self) -> Any:
        return self.spans.get_finished_spans()


@pytest.fixture
def watched() -> Iterator[Watched]:
    yield Watched()
    telemetry.watch_by(None, None)


def test_nothing_is_asked_of_anybody_who_does_not_watch() -> None:
    with telemetry.span("run", run="r1"):
        telemetry.count("concord.calls")
        telemetry.level("concord.runs.now", 3)


def test_spans_say_how_something_ended_and_not_over_what(watched: Watched) -> None:
    with pytest.raises(GoldenError), telemetry.span("run", run="r1", attempt=2):
        raise GoldenError(SECRET)
    (span,) = watched.spans.get_finished_spans()
    assert dict(span.attributes or {}) == {"run": "r1", "attempt": 2}
    assert (span.status.status_code.name, span.status.description) == ("ERROR", "GoldenError")
    assert SECRET not in watched.everything


def test_counts_add_up_and_levels_are_the_last(watched: Watched) -> None:
    for n in (3, 4, 0):
        telemetry.count("concord.tokens", n, of="prompt")
        telemetry.level("concord.runs.now", n, status="queued")
    assert watched.values("concord.tokens") == {("prompt",): 7}
    assert watched.values("concord.runs.now") == {("queued",): 0}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_names_errors_by_class_and_place(form: Any) -> None:
    try:
        raise GoldenError(SECRET)
    except GoldenError as error:
        record = logging.LogRecord("concord.jobs", 30, "f", 1, "run %s failed: %s", ("r1", error), sys.exc_info())
    line = telemetry.Line(form).format(record)
    assert SECRET not in line
    assert "run r1 failed: GoldenError" in line
    assert "test_telemetry.py" in line
    if form == "json":
        fields = json.loads(line)
        assert (fields["level"], fields["error"], fields["logger"]) == ("WARNING", "GoldenError", "concord.jobs")


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_that_is_logged_as_the_message_is_named_by_its_class(form: Any) -> None:
    record = logging.LogRecord("asyncio", 40, "f", 1, ValueError(SECRET), (), None)  # type: ignore[arg-type]
    line = telemetry.Line(form).format(record)
    assert "ValueError" in line
    assert SECRET not in line


def test_what_the_store_says_of_itself_stays() -> None:
    record = logging.LogRecord("concord", 30, "f", 1, "trying again: %s", (StoreError("The disk is full."),), None)
    assert telemetry.Line("text").format(record).endswith("trying again: The disk is full.")


def test_it_goes_where_the_usual_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    came: dict[str, bytes] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        telemetry.watch("concord-worker")
        try:
            with telemetry.span("run", run="r1", kind="calibration"):
                telemetry.count("concord.calls", 3, model="m")
        finally:
            telemetry.send_off()
            telemetry.watch_by(None, None)
            server.shutdown()
    assert b"calibration" in came["/v1/traces"]
    assert b"concord.calls" in came["/v1/metrics"]
