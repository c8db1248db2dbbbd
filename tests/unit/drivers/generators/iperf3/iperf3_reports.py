"""Reports that iperf3 3.12 wrote over the loopback, and the result of a trial with them."""

from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.iperf3 import driver
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests import builders

HERE = Path(__file__).parent
NOTHING, SOME = InterfaceCounters(0, 0, 0, 0), InterfaceCounters(70, 90, 0, 0)


def written(name: str) -> dict[str, Any]:
    return driver.report((HERE / f"{name}.json").read_text(encoding="utf-8"))


def flow(direction: Direction = Direction.FORWARD, instance: int = 1) -> Flow:
    ends = {"source_ip": "10.1.0.1", "destination_ip": "20.1.0.1", "sources": 1}
    return builders.flow_of(direction, ("one", "two"), instance=instance, **ends)


def trial(**changes: Any) -> Trial:
    asked = Trial(load_pps=2500.0, duration_s=2.0, frame=frame("256B"), protocol=Protocol.UDP, sessions=2)
    return asked.model_copy(update=changes)


def result(asked: Trial, client: dict[str, Any], server: dict[str, Any]) -> TrialResult:
    return driver.trial_result(
        asked,
        [flow(), flow(Direction.REVERSE)],
        [driver.Reports(flow(), client, server)],
        before={"one": NOTHING, "two": NOTHING},
        after={"one": SOME, "two": SOME},
        started_at="2026-01-01T00:00:00+00:00",
        total_duration_s=2.5,
    )
