"""`core.monitor`: a look at the traffic, and its page and table in the same folder, as the command writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from core.data.columns import read_map
from core.files import write_text
from core.monitoring.outcome import Monitored
from core.monitoring.periods import By
from core.monitoring.run import MonitorRequest, look_at
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.report.monitor_page import monitor_page, periods_csv

PAGE, TABLE = "monitor.html", "periods.csv"


def monitor(
    traffic: Path | str | Sequence[Path | str],
    judge_file: Path | str,
    out: Path | str,
    *,
    by: By = "day",
    label: str = "",
    anchors: Path | str | None = None,
    baseline: Sequence[str] = (),
    alpha: float = 0.05,
    judge: str = "",
    accept_edited: bool = False,
    abstain_over: float | None = None,
    mapping: Mapping[str, str] | str | Sequence[str] | None = None,
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Monitored:
    """Has quality moved in use, and was it the systems or the judge?  `out` gets `monitor.html` and `periods.csv`.

    `traffic` are tables or exports of other tools, with people's labels called `label` (the judge's aspect) among them;
    `anchors` a golden set that is scored anew at each call, `alpha` the accepted chance of any false alarm, ever.
    `mapping` is role → column of the tables, such as ``"target=answer"``; columns that the judge file keeps are used.
    No text is scored twice with the same `out`.  Errors as `core.monitoring.run.look_at`.
    """
    files = [traffic] if isinstance(traffic, (str, Path)) else traffic
    request = MonitorRequest(
        *(tuple(map(Path, files)), Path(judge_file), Path(out), by, label, None if anchors is None else Path(anchors)),
        *(tuple(baseline), alpha, judge, accept_edited, abstain_over, read_map(mapping)),
    )
    monitored = look_at(request, replies=replies, progress=progress)
    write_text(request.out / PAGE, monitor_page(monitored))
    write_text(request.out / TABLE, periods_csv(monitored))
    return monitored
