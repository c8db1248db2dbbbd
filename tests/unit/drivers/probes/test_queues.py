"""Packets that wait behind a vSwitch are those that came in and have neither gone out nor been dropped."""

from pathlib import Path

from resources.libraries.python.drivers.host.sockets.socket_backlog import ReceivingSockets, SocketCounters
from resources.libraries.python.drivers.probes.sampler.accounts import LEVELS, Amounts, PortAccount
from resources.libraries.python.drivers.probes.sampler.features import QueueAccount, SocketAccount, forwarding
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.request.kinds import NfKind
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


class Told(ReceivingSockets):
    """Sockets that were read before; then their process has ended."""

    def __init__(self, *rows: SocketCounters, in_rings: int = 0) -> None:
        self._told = iter(rows)
        self._waiting = in_rings

    def read(self) -> SocketCounters:
        """The next row.

        Raises:
            CsitError: There is none.
        """
        row = next(self._told, None)
        if row is None:
            raise CsitError("it has ended")
        return row

    def in_rings(self) -> int:
        """Always the same."""
        return self._waiting


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


def test_with_af_xdp_what_is_lost_in_user_space_does_not_wait_and_rings_need_not_be_empty_at_first() -> None:
    ports = Counted((100, 90, 0, 0), (9000, 4004, 4, 30), (9000, 4004, 4, 30))
    account = QueueAccount(ports, SocketAccount(Told(SocketCounters(10, 5), SocketCounters(410, 4305), in_rings=7)))
    assert account.read() == {"queued_packets": 7.0}
    assert account.read() == {"queued_packets": 7.0 + 8900 - 3914 - 30 - 400 - 4300}
    assert account.read() == {}, "the vSwitch has ended"


def test_what_no_port_counts_is_what_packet_sockets_refuse_and_what_is_taken_from_af_xdp_and_never_given() -> None:
    account = SocketAccount(Told(SocketCounters(4710, waiting_bytes=2048)))
    assert account.read() == {"socket_dropped_pps": 4710.0, "queued_kib": 2.0}
    assert account.read() == {}
    assert SocketAccount(Told(SocketCounters(410, 4305))).read() == {"socket_dropped_pps": 4305.0}
    assert "queued_kib" in LEVELS
    assert "socket_dropped_pps" not in LEVELS


def test_only_where_all_losses_are_known_the_sum_closes() -> None:
    assert SocketAccount(Told(SocketCounters(0, 0))).closes
    assert not SocketAccount(Told(SocketCounters(0, waiting_bytes=0))).closes
    assert not SocketAccount(Told()).closes


def planned(topology: str, *taps: Tap) -> Plan:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, taps=taps)
    return make_plan(load_topology(TOPOLOGIES / topology), cell, {})


def test_ports_that_send_copies_are_left_out() -> None:
    plan = planned("sim.yaml", Tap(position=2, kind=NfKind("sim")))
    ports = {port.interface for port in plan.ports(VSWITCH)}
    assert len(ports) == 5
    (copied,) = ports - set(forwarding(plan, VSWITCH))
    assert [segment.copies for segment in plan.segments] == [(), (copied,)]


def test_what_waits_in_physical_ports_is_not_known() -> None:
    assert forwarding(planned("available/lab-2n-kernel.yaml"), VSWITCH) == ()
