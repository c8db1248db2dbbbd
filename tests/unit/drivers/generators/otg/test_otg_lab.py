"""An OTG server as the generator of a lab: its machine is not planned, its ports are those of the cables."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg import driver as otg_driver
from resources.libraries.python.drivers.generators.otg.flows import ServerPort, configuration, sent_flows, server_ports
from resources.libraries.python.errors import CommandFailed, CsitError, InUse, NotReady, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.planning.physical_ports import attached, silent
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.machine import CompletedProgram
from resources.libraries.python.testbed.kinds import nodes as nodes_module
from resources.libraries.python.testbed.kinds.factory import layout_of, make_testbed
from resources.libraries.python.testbed.kinds.nodes import NodesTestbed
from resources.libraries.python.testbed.maintenance import machines as machines_module
from resources.libraries.python.testbed.maintenance.doctor import _of_api, _of_drivers, examine
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.remote.node import TestbedNode
from tests.builders import Altered, cell_of, shipped

LAB = shipped("available/lab-2n-otg")
CELL = cell_of(nf_chains=2)
PLAN = make_plan(LAB, CELL, layout_of(LAB))
LOCATION = LAB.tg.settings(Otg).location
PROBLEM = PreflightProblem("refused; no route to it", "start it; or correct otg.location")
"""A server's own words may have semicolons."""


def test_only_the_machine_of_the_system_under_test_is_reached_and_planned() -> None:
    with machines_module.Machines(LAB) as machines:
        assert list(machines.places) == ["DUT1"]
    assert not PLAN.cores.elsewhere
    assert {thread.machine for thread in PLAN.cores.threads} == {None}
    assert PLAN.machines["generator"] == "TG"
    assert all(port.startswith("nodes.DUT1.") for port in silent(LAB))
    assert attached(LAB)[0] == "ports of TG: port1, port2, port3, port4 by its API"


@pytest.mark.parametrize(("discriminator", "used"), [("link", 4), ("vlan", 2), ("mac", 2)])
def test_ports_of_the_server_are_those_of_the_cables(discriminator: str, used: int) -> None:
    topology = LAB.model_copy(update={"discriminator": discriminator})
    plan = make_plan(topology, CELL, layout_of(topology))
    trial = Trial(load_pps=1e3, duration_s=1.0, frame=frame("64B"))
    sent = sent_flows(plan.flows, trial, latency=False, sender="lab 1")
    asked = configuration(sent, server_ports(plan, {"port1": "1/1", "port3": "1/3"}))
    places = {"port1": "1/1", "port2": "port2", "port3": "1/3", "port4": "port4"}
    assert {port["name"]: port["location"] for port in asked["ports"]} == dict([*places.items()][:used])
    ways = [tuple(each["tx_rx"]["port"].values()) for each in asked["flows"]]
    one, other = (("port1", "port2"), ("port3", "port4") if discriminator == "link" else ("port1", "port2"))
    assert ways == [(near, [far]) for near, far in (one, one[::-1], other, other[::-1])]
    headers = [each["packet"][1] for each in asked["flows"]]
    tags = [header["vlan"]["id"]["value"] for header in headers if header["choice"] == "vlan"]
    assert tags == ([101, 101, 102, 102] if discriminator == "vlan" else [])


def test_a_port_without_a_location_is_the_device(using: Any) -> None:
    ports = {name: row.model_copy(update={"device": f"eth{name[-1]}"}) for name, row in LAB.tg.interfaces.items()}
    nodes = LAB.nodes | {"TG": LAB.tg.model_copy(update={"interfaces": ports})}
    plan = make_plan(LAB.model_copy(update={"nodes": nodes}), CELL, layout_of(LAB))
    assert set(server_ports(plan, {}).values()) == {ServerPort(f"port{n}", f"eth{n}") for n in range(1, 5)}
    client = using()
    otg_driver.OtgApi(LAB.tg.model_copy(update={"interfaces": ports, "otg": Otg(ports={"port3": "1/3"})})).open()
    assert client.did == [["eth1", "eth2", "1/3", "eth4"], []]


def test_the_doctor_says_that_the_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otg_driver.OtgApi, "problems", lambda _: (PROBLEM,))
    dut = LAB.dut.model_copy(update={"access": LAB.dut.access.model_copy(update={"host": "127.0.0.1", "port": 1})})
    topology = LAB.model_copy(update={"nodes": LAB.nodes | {"DUT1": dut}})  # a DUT that nothing waits for
    (finding,) = [row for row in examine(topology) if row.place == "nodes.TG"]
    assert (finding.level, finding.check) == ("problem", "generator")
    assert (finding.what, finding.fix) == (PROBLEM.what, PROBLEM.fix)


def _testbed(api: otg_driver.OtgApi) -> NodesTestbed:
    """One with a DUT that lacks nothing."""
    look = SimpleNamespace(problems=(), warnings=(), unsampled=None, numa_nodes={})
    does = {"look": lambda: look, "open": tuple, **dict.fromkeys(("reach", "close", "disconnect"), lambda: None)}
    return NodesTestbed(LAB, [cast(TestbedNode, SimpleNamespace(name="DUT1", prefix="", connection=None, **does))], api)


def test_a_problem_of_the_server_is_the_doctors_once_and_stops_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otg_driver.OtgApi, "problems", lambda _: (PROBLEM,))
    world = _testbed(otg_driver.OtgApi(LAB.tg))
    assert [row.what for row in [*_of_api(LAB), *_of_drivers(LAB, world)]] == [PROBLEM.what, "have all they need"]
    with pytest.raises(Unsupported, match=rf"^TG: {PROBLEM.what}; {PROBLEM.fix}$"):
        world.open()


class _Here(LocalConnection):
    """This machine, where everything may be done, or nothing as root."""

    rights = True

    def run(self, argv: Sequence[str], *, root: bool = False, **options: Any) -> CompletedProgram:
        if root and not self.rights:
            raise CommandFailed(argv, 1, "root's rights are needed")
        return super().run(argv, **options)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[ExitStack, str], None]:
    """Open a testbed with a server that sends nothing; reservations are in a folder of the test."""
    for module in (nodes_module, machines_module):
        monkeypatch.setattr(module, "LocalConnection", _Here)
    monkeypatch.setattr(leases, "DIRECTORY", str(tmp_path))
    monkeypatch.setattr(reservation, "_LOCKS", str(tmp_path))
    monkeypatch.delenv("CSIT_RESERVATION", raising=False)

    def open_it(stack: ExitStack, location: str) -> None:
        api = otg_driver.OtgApi(LAB.tg.model_copy(update={"otg": Otg(location=location)}))
        world = _testbed(cast(otg_driver.OtgApi, Altered(api, problems=tuple, open=tuple)))
        world.open()
        stack.callback(world.close)

    return open_it


def test_a_server_is_used_by_one_run_at_a_time(opened: Any) -> None:
    with ExitStack() as stack:
        opened(stack, "https://192.0.2.41:8443")
        with pytest.raises(InUse, match=r"^TG \(https://192\.0\.2\.41:8443\) is in use by another run on this mach"):
            opened(stack, "https://192.0.2.41:8443/")
        opened(stack, "https://192.0.2.42:8443")
    with ExitStack() as stack:
        opened(stack, "https://192.0.2.41:8443")


def test_a_reservation_for_hours_has_the_server_too_and_runs_join_it(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machines_module.Machines(LAB) as machines, ExitStack() as stack:
        of_api = {name: node for name, node in machines.reservable.items() if name not in machines.places}
        assert list(of_api) == [f"TG ({LOCATION})"]
        taken = reservation.Claim("lab", "tuning", 60.0)
        reservation.acquire(of_api, taken)
        with pytest.raises(InUse, match=r" for 'tuning'"):
            opened(stack, LOCATION)
        monkeypatch.setenv("CSIT_RESERVATION", taken.token)
        opened(stack, LOCATION)
        assert reservation.release(of_api, taken.token) == ()
        monkeypatch.setenv("CSIT_RESERVATION", "made-elsewhere")
        opened(stack, LOCATION.replace("//", "//2."))
        assert reservation.release(of_api, "made-elsewhere") == (), "it was free already"


def test_without_the_rights_to_lock_or_reserve_a_server_it_is_used_with_a_warning(
    opened: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(_Here, "rights", False)
    monkeypatch.setattr(reservation, "_LOCKS", str(tmp_path / "absent"))
    with machines_module.Machines(LAB) as machines, ExitStack() as stack:
        assert [*machines.reservable] == [*machines.places]
        opened(stack, "https://192.0.2.41:8443")
        opened(stack, "https://192.0.2.41:8443")
    assert "https://192.0.2.41:8443 cannot be locked (" in caplog.text


def test_a_peer_cannot_take_its_place() -> None:
    asked = MeasurementRequest(
        test_type=TestType.MRR, cell=cell_of(), frame=frame("64B"), profile=profile("ladder"), generator="iperf3"
    )  # fmt: skip
    with pytest.raises(Unsupported, match=r"^TG is driven over its API: no iperf3 can run there$"):
        make_testbed(LAB).parts(PLAN, asked)


@pytest.fixture
def using(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Put a client in the place of the driver's, whose first port gets a carrier at the third look."""

    def use(running: Any = (), looks: int = 3) -> Any:
        did: list[object] = []
        down = iter([["port1"]] * (looks - 1))

        def own_running() -> list[str]:
            if isinstance(running, CsitError):
                raise running
            return list(running)

        client = SimpleNamespace(
            did=did, version=lambda: "1.62", own_running=own_running, transmit=did.append, check_counters=lambda: None,
            configure=lambda content: did.append([port["location"] for port in content.get("ports", ())]),
            ports_down=lambda: next(down, []),
        )  # fmt: skip
        monkeypatch.setattr(otg_driver, "OtgClient", lambda _: client)
        monkeypatch.setattr(otg_driver, "_CARRIER_POLL_S", 0.001)
        return client

    return use


NAMES = [f"1/{number}" for number in range(1, 5)]


@pytest.mark.parametrize(("flows", "said"), [(2, "2 flows"), (1, "1 flow")])
def test_what_an_earlier_run_has_left_is_stopped_before_the_ports_are_tried(using: Any, flows: int, said: str) -> None:
    client = using(running=["1 forward 64 load", "1 reverse 64 load"][:flows])
    assert otg_driver.OtgApi(LAB.tg).open() == (f"stopped {said} of {LOCATION}",)
    assert client.did == ["stop", NAMES, []]


@pytest.mark.parametrize("error", [InUse("another program sends"), CsitError("connection reset")])
def test_a_server_that_others_use_or_that_is_gone_is_left_alone(using: Any, error: CsitError) -> None:
    client = using(running=error)
    generator = otg_driver.OtgGenerator(PLAN, LAB.tg.settings(Otg))
    for begin in (otg_driver.OtgApi(LAB.tg).open, generator.start):
        with pytest.raises(CsitError) as caught:
            begin()
        assert caught.value is error
    generator.stop()
    assert not client.did


def test_the_first_trial_waits_for_the_cables(using: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = using()
    otg_driver.OtgGenerator(PLAN, LAB.tg.settings(Otg)).start()
    assert client.did == [NAMES] and client.ports_down() == []
    monkeypatch.setattr(otg_driver, "CABLES_WITHIN_S", 0.01)
    using(looks=10**4)
    with pytest.raises(NotReady, match=r"^cables of generator .*; last seen: 1 without carrier, port1"):
        otg_driver.OtgGenerator(PLAN, LAB.tg.settings(Otg)).start()
