"""An OTG server as the generator of a lab: its machine is not planned, its ports are those of the cables."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg import driver as otg_driver
from resources.libraries.python.errors import CommandFailed, InUse, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.planning.physical_ports import attached, silent
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.kinds import nodes as nodes_module
from resources.libraries.python.testbed.kinds.factory import layout_of, make_testbed
from resources.libraries.python.testbed.kinds.nodes import NodesTestbed
from resources.libraries.python.testbed.maintenance import machines as machines_module
from resources.libraries.python.testbed.maintenance.doctor import _of_api, _of_drivers
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.remote.node import TestbedNode
from resources.libraries.python.testbed.roles.connection import CompletedProgram
from tests.builders import Altered, cell_of, shipped

LAB = shipped("available/lab-2n-otg")
PLAN = make_plan(LAB, cell_of(nf_chains=2), layout_of(LAB))
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
        with pytest.raises(InUse, match=rf"^TG \({LOCATION}\) is in use by another run on this mach"):
            opened(stack, f"{LOCATION}/")
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
