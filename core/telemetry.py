"""For those who watch many machines: log lines, and spans and counts of runs over OpenTelemetry where a setting asks.

Nothing that leaves here holds a key, a prompt, an item's text or a reply: lines name ids, kinds and errors by their
class; attributes are ids, kinds, models and counts.  Without `set_up` a span or a count costs a look at a variable.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.errors import JobError, StoreError, UsageError
from core.secret_values import hide

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

LogForm = Literal["text", "json"]
EXTRA = "opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2"
_ROOT = Path(__file__).parents[1]
_PLAIN = (StoreError, JobError)  # their messages are ours alone; others may quote a file or an endpoint


class _Watch:
    tracer: Tracer | None = None
    meter: Meter | None = None
    providers: tuple[Any, ...] = ()
    instruments: dict[str, Any] = {}  # noqa: RUF012 - one of this process


def log_to_stderr(form: LogForm) -> None:
    """Concord's own log lines, as text or as one JSON object each, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Line(form))
    logging.basicConfig(handlers=[handler])
    for name in ("concord", "core"):
        logging.getLogger(name).setLevel(logging.INFO)


def watch(service: str) -> None:
    """Send spans and counts by OTLP over HTTP, where the usual `OTEL_…` variables say.  UsageError without packages."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(f"CONCORD_TELEMETRY=otlp needs two packages more: pip install {EXTRA}") from error
    about = Resource.create({"service.name": service})
    traces = TracerProvider(resource=about)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    counts = MeterProvider([reader], resource=about)
    watch_by(traces.get_tracer("concord"), counts.get_meter("concord"))
    _Watch.providers = (traces, counts)


def send_off() -> None:
    """Send what has gathered, before the process ends."""
    for provider in _Watch.providers:
        provider.shutdown()
    _Watch.providers = ()


def watch_by(tracer: Tracer | None, meter: Meter | None) -> None:
    """Spans go to `tracer`, counts to `meter`; None for nowhere."""
    _Watch.tracer, _Watch.meter, _Watch.instruments = tracer, meter, {}


@contextmanager
def span(name: str, **attributes: str | int | float) -> Iterator[None]:
    """What happens within, with how long it took and the class of the error that ended it."""
    if _Watch.tracer is None:
        yield
        return
    from opentelemetry.trace import Status, StatusCode

    options = {"record_exception": False, "set_status_on_exception": False}
    with _Watch.tracer.start_as_current_span(name, attributes=attributes, **options) as current:  # type: ignore[arg-type]
        try:
            yield
        except BaseException as error:
            current.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def count(name: str, n: float = 1, **attributes: str | int) -> None:
    """Add `n` to a sum that only grows."""
    if _Watch.meter is not None and n:
        _instrument("counter", name).add(n, attributes)


def level(name: str, n: float, **attributes: str | int) -> None:
    """Say how many there are now."""
    if _Watch.meter is not None:
        _instrument("gauge", name).set(n, attributes)


def _instrument(kind: str, name: str) -> Any:
    assert _Watch.meter is not None
    if name not in _Watch.instruments:
        _Watch.instruments[name] = getattr(_Watch.meter, f"create_{kind}")(name)
    return _Watch.instruments[name]


class Line(logging.Formatter):
    """A log record as a line: errors by their class and where they came up, without what they say of data."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = record.msg % tuple(map(_bare, arguments)) if arguments else str(_bare(record.msg))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        where = [] if error is None else _frames(error)
        if self._form == "json":
            fields: dict[str, Any] = {"at": at, "level": record.levelname, "logger": record.name, "message": said}
            fields |= {} if error is None else {"error": type(error).__name__, "where": where}
            return hide(json.dumps(fields, ensure_ascii=False))
        ending = "" if error is None else f"\n  {type(error).__name__} at " + "\n    ".join(where)
        return hide(f"{at} {record.levelname} {record.name}: {said}{ending}")


def _bare(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) and not isinstance(value, _PLAIN) else value


def _frames(error: BaseException) -> list[str]:
    """`core/jobs/queue.py:301 in _to_the_end`, the outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]


def _short(path: str) -> str:
    file = Path(path)
    return str(file.relative_to(_ROOT)) if file.is_relative_to(_ROOT) else file.name
