"""What the OTG server does with ports and workers, of which there are none here."""

import json
import threading
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.otg.server import ports, traffic
from resources.libraries.python.drivers.generators.otg.server.schema import OtgConfig, parse
from resources.libraries.python.drivers.generators.otg.server.traffic import Traffic
from resources.libraries.python.errors import CsitError, NotReady
from tests.unit.drivers.generators.otg.otg_configurations import configuration

CLIENTS_WAIT_S = 60.0


class Clock:
    """Time that passes only where something waits."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


class Machine:
    """Interfaces, and workers that answer when `answers_after_s` have passed since they were made or asked."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.interfaces = {"eth1": True, "eth2": True}
        self.answers_after_s: Mapping[int, float] = {}
        self.workers: list[Worker] = []

    def is_up(self, name: str) -> bool:
        if name not in self.interfaces:
            raise CsitError(f"generator port {name}: No such device")
        return self.interfaces[name]


class Worker:
    def __init__(self, machine: Machine) -> None:
        self._machine, self._number = machine, len(machine.workers)
        self._asked_s = machine.clock.now_s
        self.is_closed = self.ended = False
        machine.workers.append(self)

    def send(self, record: Mapping[str, object]) -> None:
        del record
        self._asked_s = self._machine.clock.now_s

    def answer(self, what: str, within_s: float) -> dict[str, Any]:
        clock = self._machine.clock
        ready_s = self._asked_s + self._machine.answers_after_s.get(self._number, 0.0)
        if ready_s > (deadline_s := clock.now_s + max(0.0, within_s)):
            clock.now_s = deadline_s
            raise NotReady(what, max(0.0, within_s), f"nothing from worker {self._number}")
        clock.now_s = max(clock.now_s, ready_s)
        return {}

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    counter = SimpleNamespace(close=lambda: None, read=lambda: 0)
    rows = lambda: {name: ["0"] * 16 for name in made.interfaces}  # noqa: E731
    for name, value in {
        "time": made.clock,
        "WorkerProcess": lambda: Worker(made),
        "_counter": lambda *_: counter,
        "ThreadCounters": lambda _: SimpleNamespace(rows=rows, close=lambda: None),
    }.items():
        monkeypatch.setattr(traffic, name, value)
    monkeypatch.setattr(ports, "kernel", SimpleNamespace(link_is_up=made.is_up))
    monkeypatch.setattr(ports, "ethtool", SimpleNamespace(speed_bps=lambda *_: None))
    return made


@pytest.fixture
def served(machine: Machine) -> Iterator[Traffic]:
    del machine
    made = Traffic(["eth1", "eth2"])
    yield made
    made.close()


def configure(traffic: Traffic, flows: int) -> None:
    """Configure two ports, and as many flows from one to the other."""
    given = configuration()
    given["flows"] = [{**given["flows"][0], "name": f"f{number}"} for number in range(flows)]
    traffic.configure(parse(json.dumps(given).encode(), OtgConfig), given)


def test_ports_without_carrier_can_be_configured_and_are_reported_as_down(machine: Machine, served: Traffic) -> None:
    """Before a run the other ends of the cables are often down."""
    machine.interfaces["eth2"] = False
    configure(served, 0)
    assert {row["name"]: row["link"] for row in served.port_metrics(())} == {"p1": "up", "p2": "down"}
    machine.interfaces["eth2"] = True
    assert [row["link"] for row in served.port_metrics(("p2",))] == ["up"]


def test_flows_need_a_carrier(machine: Machine, served: Traffic) -> None:
    machine.interfaces["eth2"] = False
    with pytest.raises(CsitError, match=r"^ports\[1\]\.location: eth2 is down$"):
        configure(served, 1)


@pytest.mark.parametrize("flows", [0, 1])
def test_a_port_that_is_not_there_is_refused(machine: Machine, served: Traffic, flows: int) -> None:
    del machine.interfaces["eth2"]
    with pytest.raises(CsitError, match="eth2: No such device"):
        configure(served, flows)


def test_all_workers_share_the_time_in_which_they_have_to_start(machine: Machine, served: Traffic) -> None:
    machine.answers_after_s = {number: 14.0 * (number + 1) for number in range(6)}
    begun_s = machine.clock.now_s
    with pytest.raises(NotReady, match=r"^generator worker of flow f3 not ready after 45\.0 s; .*from worker 3$"):
        configure(served, 6)
    assert machine.clock.now_s - begun_s < CLIENTS_WAIT_S
    assert all(worker.is_closed for worker in machine.workers) and not served.given


def test_workers_that_start_beside_each_other_need_not_be_waited_for_in_turn(machine: Machine, served: Traffic) -> None:
    machine.answers_after_s = dict.fromkeys(range(6), 40.0)
    configure(served, 6)
    assert [row["name"] for row in served.flow_metrics(())] == [f"f{number}" for number in range(6)]


def test_all_workers_share_the_time_in_which_they_prepare_frames(machine: Machine, served: Traffic) -> None:
    configure(served, 6)
    machine.answers_after_s = {number: 6.0 * (number + 1) for number in range(6)}
    with pytest.raises(NotReady, match=r"^generator's frames of flow f2 not ready after 15\.0 s; "):
        served.start(())


def test_all_flows_share_the_time_in_which_they_have_to_stop(machine: Machine, served: Traffic) -> None:
    configure(served, 6)
    begun_s = machine.clock.now_s

    def ending(after_s: float) -> SimpleNamespace:
        """The thread of a flow that ends later."""

        def join(within_s: float) -> None:
            machine.clock.now_s = max(machine.clock.now_s, min(begun_s + after_s, machine.clock.now_s + within_s))

        return SimpleNamespace(join=join, is_alive=lambda: machine.clock.now_s < begun_s + after_s)

    for number in range(6):
        served._flows[f"f{number}"]._thread = cast(threading.Thread, ending(6.0 * (number + 1)))
    with pytest.raises(NotReady, match=r"^the end of flow f2 not ready after 15\.0 s; "):
        served.stop()
    assert machine.clock.now_s - begun_s == pytest.approx(15)


def test_workers_take_the_flows_of_the_next_configuration_and_those_without_one_end(
    machine: Machine, served: Traffic
) -> None:
    configure(served, 3)
    configure(served, 2)
    assert sorted(worker.is_closed for worker in machine.workers) == [False, False, True]
    configure(served, 4)
    assert len(machine.workers) == 5
    configure(served, 0)
    assert all(worker.is_closed for worker in machine.workers)


def test_workers_that_ended_or_wait_for_the_word_to_go_take_no_other_flow(machine: Machine, served: Traffic) -> None:
    configure(served, 3)
    machine.workers[0].ended = True
    machine.answers_after_s = {1: 20.0}
    with pytest.raises(NotReady, match=r"^generator's frames of flow f1 "):
        served.start(["f1"])
    machine.answers_after_s = {}
    configure(served, 3)
    assert [worker.is_closed for worker in machine.workers] == [True, True, False, False, False]


def test_a_flow_that_cannot_be_opened_leaves_no_worker(
    machine: Machine, served: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(served, 3)

    def refuse(*_: object) -> None:
        raise CsitError("eth2: out of memory")

    monkeypatch.setattr(traffic, "_counter", refuse)
    with pytest.raises(CsitError, match=r"^eth2: out of memory$"):
        configure(served, 2)
    assert all(worker.is_closed for worker in machine.workers)
