"""50 browser sessions on one server: 20 annotators save a label every 2 s while one calibration after another runs.

    python tests/bench/bench_labelling.py [--seconds 30] [--annotators 20] [--onlookers 30]

A server and its worker run as processes of their own on 127.0.0.1 with a temporary store.  Each session speaks the
browser's own protocol over a websocket: an annotator presses a label, waits until the server has drawn the answer,
sends Enter, and waits for the next item.  Every tenth label is pressed twice without a pause.  The onlookers have a
screen open and draw it again every half minute.  The requirement is for 3 minutes (`--seconds 180`).

Prints the server time from a press to its answer (with the transfer over the loopback) for the save, for the next item,
and for both together, whose 95th percentile must be under 500 ms, and how many labels the store lost or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import numpy as np
from served import golden_set, started
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.projects.calibration import CalibrationRequest
from core.projects.labelling import LabelAspect, LabelPlan
from core.records import Scale
from core.settings import Settings
from core.store.store import Store
from pages.ui import remembered

LIMIT_MS, PAUSE, ANSWER_SECONDS = 500.0, 2.0, 60.0
FINISHED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
LABEL = re.compile(r"\*\*\\?([1-5])\*\*")


@dataclass
class Session:
    """One browser tab: its buttons by label, and a way to press them."""

    socket: aiohttp.ClientWebSocketResponse
    query: str
    page: str = ""
    buttons: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def run(self, press: str = "", fragment: str = "") -> float:
        """Run the page, or a fragment, with a button pressed; return the milliseconds until it was drawn."""
        start = time.perf_counter()
        await self.send(press, fragment)
        await self.until_drawn()
        return 1000 * (time.perf_counter() - start)

    async def send(self, press: str = "", fragment: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash, state.fragment_id = self.query, self.page, fragment
        if press:
            state.widget_states.widgets.add(id=press, trigger_value=True)
        await self.socket.send_bytes(message.SerializeToString())

    async def until_drawn(self) -> None:
        while not await self._take(ANSWER_SECONDS):
            continue

    async def until_quiet(self, seconds: float = 0.5) -> None:
        """Read messages until none has come for so long."""
        while True:
            try:
                await self._take(seconds)
            except TimeoutError:
                return

    async def idle(self, seconds: float) -> None:
        """Read messages for so long: a browser answers the server's pings while its user does nothing."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                await self._take(left)
            except TimeoutError:
                return

    async def _take(self, seconds: float) -> bool:
        """Read one message; return whether it ends a run."""
        data = await asyncio.wait_for(self.socket.receive(), seconds)
        if data.type is not aiohttp.WSMsgType.BINARY:
            raise RuntimeError(f"the server closed the session: {data.type.name}")
        message = ForwardMsg.FromString(data.data)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.buttons.clear()
        elif kind == "navigation":
            self.page = message.navigation.page_script_hash
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta)
        return kind == "script_finished" and message.script_finished in FINISHED

    def _see(self, delta: Any) -> None:
        element = delta.new_element
        if element.WhichOneof("type") == "button":
            result = LABEL.fullmatch(element.button.label)
            name = result[1] if result else element.button.label
            self.buttons[name] = (element.button.id, delta.fragment_id)
        elif element.WhichOneof("type") == "exception":
            raise RuntimeError(f"the screen failed: {element.exception.message}")


@dataclass
class Tally:
    """Times in ms, and the saved labels as the annotators saw them: (rater, running number) → label."""

    saves: list[float] = field(default_factory=list)
    ways: list[float] = field(default_factory=list)
    said: dict[tuple[str, int], float] = field(default_factory=dict)
    calibrations: int = 0


async def opened(client: aiohttp.ClientSession, url: str, screen: str, *, who: str = "", **ids: str) -> Session:
    """Open a tab of a browser that remembers the name `who`."""
    cookie = f"{remembered._name_cookie(Settings.from_environment())}={quote(who)}"
    socket_ = await client.ws_connect(
        f"{url}/_stcore/stream", protocols=("streamlit",), max_msg_size=0, headers={"Cookie": cookie}
    )
    session = Session(socket_, urlencode(ids))
    message = BackMsg()
    message.rerun_script.query_string, message.rerun_script.page_name = session.query, screen
    await socket_.send_bytes(message.SerializeToString())
    await session.until_drawn()
    return session


async def annotate(session: Session, rater: str, end: float, tally: Tally) -> None:
    """Save a label every `PAUSE` seconds until `end`; every tenth is pressed twice, and is not timed."""
    chooser = random.Random(rater)
    await asyncio.sleep(chooser.random() * PAUSE)
    number = 0
    while time.monotonic() < end:
        began, value = time.monotonic(), chooser.randint(1, 5)
        button, fragment = session.buttons[str(value)]
        twice = number % 10 == 9
        if twice:
            await session.send(button, fragment)
        saved = await session.run(button, fragment)
        if twice:
            await session.until_quiet()
        tally.said[rater, number] = float(value)
        went_on = await session.run(*session.buttons["Save and next"])
        if not twice:
            tally.saves.append(saved)
            tally.ways.append(went_on)
        number += 1
        await asyncio.sleep(max(0.0, PAUSE - (time.monotonic() - began)))


async def look_on(session: Session, place: int, end: float) -> None:
    """Draw the screen again every half minute or so."""
    while time.monotonic() < end:
        await session.idle(15.0 + place % 30)
        await session.run()


async def drive(
    url: str, options: argparse.Namespace, ids: dict[str, str], calibrate: Callable[[int], str], store: Store
) -> Tally:
    """Open all sessions, and let them work while calibrations run."""
    tally = Tally()
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(limit=0)) as client:
        raters = [f"rater {k}" for k in range(options.annotators)]
        desks = []
        for rater in raters:
            session = await opened(client, url, "label", **ids, who=rater)
            await session.run(*session.buttons["Begin labelling"])
            desks.append(session)
        screens = ("golden_set" if k % 2 else "runs" for k in range(options.onlookers))
        others = [await opened(client, url, screen, project=ids["project"]) for screen in screens]
        end = time.monotonic() + options.seconds
        counted = asyncio.create_task(keep_calibrating(store, calibrate, end))
        await asyncio.gather(
            *(annotate(session, rater, end, tally) for session, rater in zip(desks, raters, strict=True)),
            *(look_on(session, place, end) for place, session in enumerate(others)),
        )
        tally.calibrations = await counted
    return tally


def lost_and_double(store: Store, project_id: str, tally: Tally) -> tuple[int, int, int]:
    """Compare the labels as pressed with the rows of each rater; return (labels in the store, lost, double)."""
    rows: dict[str, list[Any]] = {}
    (passed,) = projects.list_passes(store, project_id)
    for rater in passed.raters:
        rows[rater] = store.labels.history(project_id, passed.pass_id, rater)
    lost = double = 0
    for rater in {name for name, _ in tally.said}:
        kept = sorted(rows.get(rater, []), key=lambda row: row.at)
        said = [value for (name, _), value in sorted(tally.said.items()) if name == rater]
        double += len(kept) - len({row.item_id for row in kept})
        distinct = [row.value for row in {row.item_id: row for row in kept}.values()]
        lost += sum(a != b for a, b in zip(said, distinct, strict=False)) + max(0, len(said) - len(distinct))
    return sum(map(len, rows.values())), lost, double


async def keep_calibrating(store: Store, calibrate: Callable[[int], str], end: float) -> int:
    """Start the next calibration whenever one has ended; return how many there were."""
    number, run_id = 1, await asyncio.to_thread(calibrate, 0)
    while time.monotonic() < end:
        run = await asyncio.to_thread(projects.run_view, store, run_id)
        if run.status in ("failed", "cancelled"):
            raise RuntimeError(f"a calibration is {run.status}: {run.error}")
        if run.finished:
            run_id = await asyncio.to_thread(calibrate, number)
            number += 1
        await asyncio.sleep(1.0)
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--annotators", type=int, default=20)
    parser.add_argument("--onlookers", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ |= {"CONCORD_HOME": home, "OMP_NUM_THREADS": "1"}
        settings = Settings.from_environment()
        store = projects.open_store(settings)
        project_id = projects.create_project(store, "bench").project_id
        golden_id = projects.add_golden(store, project_id, golden_set())
        aspect = LabelAspect("coherence", Scale(1, 5, 1.0, given=True), "how well it hangs together")
        plan = LabelPlan((aspect,), n_raters=options.annotators, shared=200)
        pass_id = projects.start_pass(store, project_id, golden_id, "bench", plan)

        def calibrate(seed: int) -> str:
            chosen = CalibrationSettings(rounds=20, revisit="full", seed=seed)
            request = CalibrationRequest(project_id, golden_id, "coherence", settings=chosen)
            return projects.start_run(store, settings, request)

        with started(Path(home)) as url:
            ids = {"project": project_id, "labelling": pass_id}
            tally = asyncio.run(drive(url, options, ids, calibrate, store))
        kept, lost, double = lost_and_double(store, project_id, tally)
    print(f"{options.annotators} annotators and {options.onlookers} onlookers for {options.seconds:.0f} s")
    both = np.add(tally.saves, tally.ways)
    for name, times in (("save", tally.saves), ("next", tally.ways), ("save and next", both)):
        middle, high = np.percentile(times, (50, 95))
        print(f"  {name:14} median {middle:.0f} ms, 95th percentile {high:.0f} ms")
    print(f"  {len(tally.said)} labels pressed, {kept} stored, {lost} lost, {double} double")
    print(f"  {tally.calibrations} calibrations, machine load {os.getloadavg()[0]:.1f}")
    return 0 if np.percentile(both, 95) <= LIMIT_MS and not lost + double else 1


if __name__ == "__main__":
    sys.exit(main())
