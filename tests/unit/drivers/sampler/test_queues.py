"""Packets that wait behind a vSwitch are those that came in and have neither gone out nor been dropped."""

from pathlib import Path

from resources.libraries.python.drivers.sampler.accounts import LEVELS, Amounts
from resources.libraries.python.drivers.sampler.guest_accounts import PortAccount
from resources.libraries.python.drivers.sampler.queues import QueueAccount, forwarding
from resources.libraries.python.model.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan

TOPOLOGIES = Path(__file__).parents[4] / "topologies"


class Counted(PortAccount):
    """Ports that were read before."""

    def __init__(self, *rows: tuple[int, int, int, int]) -> None:
        self._rows = iter(rows)

    def read(self) -> Amounts:
        """The next row: received, sent, dropped coming in, dropped going out."""
        row = next(self._rows, None)
        names = ("rx_pps", "tx_pps", "rx_dropped_pps", "tx_dropped_pps")
        return {} if row is None else dict(zip(names, map(float, row), strict=True))


def test_what_came_in_and_neither_went_out_nor_was_dropped_waits() -> None:
    account = QueueAccount(Counted((100, 90, 0, 0), (1000, 704, 4, 30)))
    assert account.read() == {"queued_packets": 0.0}, "what was lost before counts for nothing"
    assert account.read() == {"queued_packets": 256.0}
    assert account.read() == {}, "nobody answers any more"
    assert "queued_packets" in LEVELS


def test_counters_that_are_not_read_at_one_moment_make_no_queue_shorter_than_empty() -> None:
    account = QueueAccount(Counted((0, 0, 0, 0), (100, 103, 0, 0)))
    account.read()
    assert account.read() == {"queued_packets": 0.0}


def planned(topology: str, *taps: Tap) -> Plan:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, taps=taps)
    return make_plan(load_topology(TOPOLOGIES / topology), cell, {})


def test_ports_that_send_copies_are_left_out() -> None:
    plan = planned("sim.yaml", Tap(position=2, kind=NfKind.SIM))
    ports = {port.interface for port in plan.ports(VSWITCH)}
    assert len(ports) == 5
    (copied,) = ports - set(forwarding(plan, VSWITCH))
    assert [segment.copies for segment in plan.segments] == [(), (copied,)]


def test_what_waits_in_physical_ports_is_not_known() -> None:
    assert forwarding(planned("available/lab-2n-kernel.yaml"), VSWITCH) == ()
