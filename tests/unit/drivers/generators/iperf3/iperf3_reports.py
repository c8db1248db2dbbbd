"""Reports that iperf3 3.12 wrote over the loopback, and the result of a trial with them."""

from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.iperf3 import run
from resources.libraries.python.drivers.generators.iperf3.driver import trial_result
from resources.libraries.python.drivers.generators.iperf3.run import Reports
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol

HERE = Path(__file__).parent
NOTHING, SOME = InterfaceCounters(0, 0, 0, 0), InterfaceCounters(70, 90, 0, 0)


def written(name: str) -> dict[str, Any]:
    return run.report((HERE / f"{name}.json").read_text(encoding="utf-8"))


def flow(direction: Direction = Direction.FORWARD, instance: int = 1) -> Flow:
    ports = ("one", "two") if direction is Direction.FORWARD else ("two", "one")
    return Flow(
        instance=instance,
        direction=direction,
        tx_interface=ports[0],
        rx_interface=ports[1],
        source_mac="02:00:00:00:01:01",
        destination_mac="02:00:00:00:01:02",
        source_ip="10.1.0.1",
        sources=1,
        destination_ip="20.1.0.1",
    )


def trial(**changes: Any) -> Trial:
    asked = Trial(load_pps=2500.0, duration_s=2.0, frame=frame("256B"), protocol=Protocol.UDP, sessions=2)
    return asked.model_copy(update=changes)


def result(asked: Trial, client: dict[str, Any], server: dict[str, Any]) -> TrialResult:
    return trial_result(
        asked,
        [flow(), flow(Direction.REVERSE)],
        [Reports(flow(), client, server)],
        before={"one": NOTHING, "two": NOTHING},
        after={"one": SOME, "two": SOME},
        started_at="2026-01-01T00:00:00+00:00",
        total_duration_s=2.5,
    )
