"""Workers of the built-in generator for trials in both directions, and in one."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, ClassVar

import pytest

from resources.libraries.python.drivers.generators.builtin import driver
from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generators.builtin.wire import FlowReport, TrialReport
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests.builders import cpus, plan_of

BOTH = {Direction.FORWARD, Direction.REVERSE}


class Worker:
    """A worker that sends its whole load."""

    made: ClassVar["list[Worker]"] = []

    def __init__(self) -> None:
        self.pid = len(self.made) + 1
        self.told: list[dict[str, Any]] = []
        self.closed = False
        self.made.append(self)

    def send(self, record: dict[str, Any]) -> None:
        self.told.append(record)

    def answer(self, what: str, _: float) -> dict[str, Any]:
        if what != "generator's report":
            return {"sending": "a stub", "fallback": None}
        flows = self.told[0]["flows"]
        spec = next(each["prepare"] for each in reversed(self.told) if "prepare" in each)
        each = round(spec["load_pps"] * spec["duration_s"] / len(flows))
        row = FlowReport(each, each, 0, 0, 0, None, 0)
        report = TrialReport(each * len(flows), spec["duration_s"], spec["duration_s"], 0.0, True, (row,) * len(flows))
        return asdict(report)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Worker]]:
    monkeypatch.setattr(driver, "WorkerProcess", Worker)
    monkeypatch.setattr(driver, "first_to_speak", lambda waiting, *_: waiting[0])
    yield Worker.made
    Worker.made.clear()


@pytest.mark.parametrize("cores", [2, 16])
def test_a_trial_in_one_direction_has_all_of_its_load_there(cores: int, workers: list[Worker]) -> None:
    generator = BuiltInGenerator(plan_of("local", "CSC", 2, cores=cpus(cores)))
    generator.start()
    first = len(workers)
    both = Trial(load_pps=4000, duration_s=1, frame=frame("64B"))
    one_way = both.model_copy(update={"only": Direction.FORWARD})
    assert {flow.direction for flow in generator.run(both).flows} == BOTH
    assert len(workers) == first, "no worker is started anew"
    result = generator.run(one_way)
    assert [(flow.instance, flow.direction, flow.sent) for flow in result.flows] == [
        (1, Direction.FORWARD, 2000),
        (2, Direction.FORWARD, 2000),
    ]
    assert len(workers) == first + 1 and all(worker.closed for worker in workers[:first])
    assert not result.generator_limited
    generator.run(one_way)
    assert len(workers) == first + 1, "workers stay for the next trial in this direction"
    assert {flow.direction for flow in generator.run(both).flows} == BOTH
    assert workers[first].closed
    generator.stop()
    assert all(worker.closed for worker in workers)


def test_workers_send_tcp_where_a_trial_asks_for_it_and_no_packet_has_a_number(workers: list[Worker]) -> None:
    generator = BuiltInGenerator(plan_of("local", "CSC", 1, cores=cpus(2)))
    generator.start()
    asked = Trial(load_pps=4000, duration_s=1, frame=frame("64B"), protocol=Protocol.TCP)
    generator.run(asked)
    spec = next(each["prepare"] for each in workers[-1].told if "prepare" in each)
    assert (spec["tcp"], spec["udp"]) == (True, False)
    with pytest.raises(Unsupported, match="losses and timelines number UDP datagrams, not TCP segments"):
        generator.run(asked.model_copy(update={"count_losses": True}))
    with pytest.raises(Unsupported, match="the built-in generator sends no ICMP"):
        generator.run(asked.model_copy(update={"protocol": Protocol.ICMP}))
    generator.stop()


@pytest.mark.parametrize("cores", [2, 16])
def test_prepared_workers_are_those_that_start_and_are_ended_without_a_start(cores: int, workers: list[Worker]) -> None:
    generator = BuiltInGenerator(plan_of("local", "CSC", 2, cores=cpus(cores)))
    generator.prepare()
    generator.prepare()
    prepared = list(workers)
    assert prepared and not any(worker.told for worker in prepared)
    generator.start()
    assert workers == prepared and all(worker.told for worker in prepared)
    generator.stop()
    generator.prepare()
    generator.stop()
    assert len(workers) == 2 * len(prepared) and all(worker.closed for worker in workers)
    generator.start()
    assert len(workers) == 3 * len(prepared), "none that was ended is used"
    generator.stop()
