"""The accounts behind features, queues and sockets are read right, and what is missing is left out."""

import os
import socket
import struct
from pathlib import Path
from typing import cast

import pytest

from resources.libraries.python.drivers.host.cgroups.cgroups import Controllers
from resources.libraries.python.drivers.host.sockets import socket_backlog
from resources.libraries.python.drivers.host.sockets.socket_backlog import ReceivingSockets, SocketCounters
from resources.libraries.python.drivers.probes.sampler import accounts
from resources.libraries.python.drivers.probes.sampler.accounts import LEVELS, Amounts, PortAccount
from resources.libraries.python.drivers.probes.sampler.features import (
    QueueAccount,
    SocketAccount,
    forwarding,
    group_of,
    series_of,
)
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks, tasks_of, threads_of
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.chains.analysis.features import FEATURES

NAMES = {feature.name for feature in FEATURES}
TICK = 100 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SWITCHES = "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\nx86_Thread_features:\t\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def stat(pid: int, parent: int, name: str = "a (b", user: int = 0, system: int = 0) -> str:
    fields = ["S", str(parent), *["0"] * 9, str(user), str(system), *["0"] * 4, "3", "0", "0", "0", "10", *["0"] * 5]
    return f"{pid} ({name}) {' '.join(fields)}\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A process 10 with threads 10 and 11, and a thread 20 of the kernel."""
    write(tmp_path / "10" / "stat", stat(10, 1, user=7, system=5))
    write(tmp_path / "10" / "io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 512\n")
    for thread in (10, 11):
        write(tmp_path / "10" / "task" / str(thread) / "comm", "CPU 0/KVM\n" if thread == 11 else "qemu\n")
        write(tmp_path / str(thread) / "comm", "CPU 0/KVM\n" if thread == 11 else "qemu\n")
    for thread, times in ((10, (9, 2)), (11, (30_000_000, 3)), (20, (50_000_000, 10_000_000))):
        write(tmp_path / str(thread) / "schedstat", f"{times[0]} {times[1]} 1\n")
        write(tmp_path / str(thread) / "status", SWITCHES.format(thread, 1))
    return tmp_path


def test_processes_and_the_threads_that_work_for_them_are_added_up(proc: Path) -> None:
    found = accounts.TaskAccount(Tasks((10,), (20,)), proc).read()
    assert found["user_percent"] == pytest.approx(7 * TICK)
    assert found["system_percent"] == pytest.approx(5 * TICK)
    assert found["helper_percent"] == pytest.approx(5.0)
    assert found["cpu_percent"] == pytest.approx(12 * TICK + 5.0)
    assert found["waiting_percent"] == pytest.approx((2 + 3 + 10_000_000) / 1e7)
    assert (found["voluntary_switches"], found["involuntary_switches"]) == (41, 3)
    assert (found["threads"], found["memory_bytes"]) == (4, 10 * PAGE)
    assert (found["read_bytes_per_s"], found["written_bytes_per_s"]) == (4096, 512)
    assert found.keys() <= NAMES


def test_of_an_owner_without_tasks_nothing_is_known(proc: Path) -> None:
    assert accounts.TaskAccount(Tasks(), proc).read() == {}
    assert "memory_bytes" not in accounts.TaskAccount(Tasks(helpers=(20,)), proc).read()


def test_a_process_that_has_ended_leaves_the_others(proc: Path) -> None:
    assert accounts.TaskAccount(Tasks((99,), (20,)), proc).read()["cpu_percent"] == pytest.approx(5.0)


def test_vcpus_are_the_guests_own_time(proc: Path) -> None:
    vcpus = Tasks((10,)).vcpus(proc)
    assert vcpus == (11,)
    assert accounts.VcpuAccount(vcpus, proc).read() == {"guest_cpu_percent": pytest.approx(3.0)}


def test_an_owner_without_quota_never_stands_still() -> None:
    assert accounts.NeverThrottled().read() == {"throttled_percent": 0.0}


def test_the_machines_accounts_are_parsed(tmp_path: Path) -> None:
    write(tmp_path / "stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 99 1 2\nctxt 77\n")
    write(tmp_path / "softirqs", "       CPU0  CPU1\nNET_TX: 1 2\nNET_RX: 3 4\nRCU: 9 9\n")
    queued = f"00000010 00000002 0000000a{' 00000000' * 8} 00000011\n"
    write(tmp_path / "net" / "softnet_stat", queued + "00000010 00000001 00000001\n")
    write(tmp_path / "meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n")
    found = accounts.MachineAccount(tmp_path).read()
    assert found == {
        "all_user_percent": pytest.approx(3 * TICK),
        "all_system_percent": pytest.approx(3 * TICK),
        "all_idle_percent": pytest.approx(9 * TICK),
        "all_interrupt_percent": pytest.approx(6 * TICK),
        "all_softirq_percent": pytest.approx(7 * TICK),
        "all_stolen_percent": pytest.approx(8 * TICK),
        "all_interrupts": 99,
        "all_switches": 77,
        "all_net_tx_softirqs": 3,
        "all_net_rx_softirqs": 7,
        "backlog_drops": 3,
        "backlog_packets": 17,
        "time_squeezes": 11,
        "memory_used_bytes": 60 * 1024,
    }
    assert found.keys() <= NAMES


def test_a_machine_without_such_files_has_none_of_them(tmp_path: Path) -> None:
    assert accounts.MachineAccount(tmp_path).read() == {}


def test_what_was_started_for_an_owner_is_found_by_its_name_and_what_was_not_is_left_alone(tmp_path: Path) -> None:
    rows = {10: (1, "other nf-7-1"), 50: (1, "robot"), 51: (50, "qemu -name nf-7-1 -m 64"), 52: (50, "x nf-7-10")}
    for pid, (parent, command) in rows.items():
        write(tmp_path / str(pid) / "stat", stat(pid, parent))
        write(tmp_path / str(pid) / "cmdline", command.replace(" ", "\0"))
    write(tmp_path / "60" / "stat", stat(60, 2, name="vhost-51"))
    found = tasks_of(["nf-7-1", "nf-7-2"], {"nf-7-1": [20]}, tmp_path, mine=50)
    assert found == {"nf-7-1": Tasks((51,), (20, 60)), "nf-7-2": Tasks()}


def test_a_process_that_is_gone_has_no_threads(tmp_path: Path) -> None:
    assert threads_of(4711, tmp_path) == ()


@pytest.mark.parametrize(
    ("version", "mine", "its", "found"),
    [
        (1, "4:memory:/job\n1:cpu:/\n", "4:memory:/job\n1:cpu:/csit-nf-1-1\n", True),
        (1, "4:memory:/job\n1:cpu:/\n", "4:memory:/job\n1:cpu:/\n", False),
        (1, "1:cpu,cpuacct:/job\n", "1:cpu,cpuacct:/job\n", False),
        (2, "0::/job\n", "0::/csit-nf-1-1\n", True),
        (2, "0::/job\n", "0::/\n", False),
    ],
)
def test_a_control_group_counts_only_when_it_was_made_for_the_owner(
    tmp_path: Path, version: int, mine: str, its: str, *, found: bool
) -> None:
    write(tmp_path / "50" / "cgroup", mine)
    write(tmp_path / "51" / "cgroup", its)
    roots = dict.fromkeys(("cpu", "cpuacct", "memory"), tmp_path / "groups")
    controllers = Controllers(1 if version == 1 else 2, roots)
    group = group_of(Tasks((51,)), controllers, tmp_path, mine=50)
    assert (group is not None) is found
    if group is not None:
        assert group.folders == (tmp_path / "groups" / "csit-nf-1-1",)


def test_each_second_has_what_was_gained_in_it_and_levels_as_they_are() -> None:
    readings = [
        (0.0, {"nf": {"cpu_percent": 10.0, "memory_bytes": 5.0}}),
        (1.001, {"nf": {"cpu_percent": 60.05, "memory_bytes": 7.0}}),
        (2.001, {"nf": {"cpu_percent": 60.05, "memory_bytes": 6.0}}),
    ]
    found = {row.feature: row.values for row in series_of(readings)}
    assert found["cpu_percent"] == pytest.approx((50.0, 0.0))
    assert found["memory_bytes"] == (7.0, 6.0)
    assert "memory_bytes" in accounts.LEVELS


def test_a_reading_that_came_too_late_leaves_its_second_unknown() -> None:
    readings = [(0.0, {"nf": {"rx_pps": 0.0}}), (1.7, {"nf": {"rx_pps": 170.0}}), (3.0, {"nf": {"rx_pps": 430.0}})]
    first, second, third = series_of(readings)[0].values
    assert (first, second) == (None, None)
    assert third == pytest.approx(200.0)


def test_a_feature_that_vanishes_is_unknown_from_then_on() -> None:
    nothing: accounts.Amounts = {}
    readings = [(0.0, {"nf": {"rx_pps": 0.0}}), (1.0, {"nf": {"rx_pps": 5.0}}), (2.0, {"nf": nothing})]
    assert series_of(readings)[0].values == (5.0, None)


def test_without_a_whole_second_there_is_no_value() -> None:
    assert series_of([]) == ()
    assert series_of([(0.0, {"nf": {"rx_pps": 0.0}})])[0].values == ()


def test_features_have_names_of_their_own() -> None:
    assert len(NAMES) == len(FEATURES)
    assert all(feature.meaning for feature in FEATURES)


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
    assert account.read() == {}, "its programs have ended"
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


MAPS = """\
7f232c2d0000-7f232c2db000 r--p 00000000 fe:00 4711                       /usr/sbin/ovs-vswitchd
7f232c2db000-7f232c2e4000 rw-s 80000000 00:09 10242850                   socket:[10242850]
7f232c2e4000-7f232c2ed000 rw-s 00000000 00:09 10242850                   socket:[10242850]
7f232c2ed000-7f232c2f2000 rw-s 180000000 00:09 10242850                  socket:[10242850]
7ffd1a2b3000-7ffd1a2d4000 rw-p 00000000 00:00 0                          [stack]
"""


class Answering:
    """A socket whose options have known values, of which it gives as many bytes as are asked for, like the kernel."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = iter(answers)

    def getsockopt(self, _level: int, _option: int, length: int) -> bytes:
        """The next answer."""
        return next(self._answers)[:length]


def answering(*answers: bytes) -> socket.socket:
    return cast(socket.socket, Answering(*answers))


def memory(*drops: int) -> list[bytes]:
    """Of packet sockets in which 4608 bytes wait."""
    return [struct.pack("=9I", 4608, 212992, 0, 212992, 3584, 0, 0, 0, dropped) for dropped in drops]


def test_what_a_packet_socket_dropped_is_the_last_of_its_numbers() -> None:
    assert socket_backlog.refused_by_packet_socket(answering(*memory(77))) == 77


def test_a_count_of_32_bits_that_begins_again_goes_on_growing() -> None:
    count = socket_backlog.Count(answering(*memory(2**32 - 5, 3, 3)), socket_backlog.refused_by_packet_socket)
    assert [count.read() for _ in range(3)] == [2**32 - 5, 2**32 + 3, 2**32 + 3]


def test_a_socket_of_af_xdp_drops_where_its_ring_is_full_or_it_has_no_buffer() -> None:
    assert socket_backlog.refused_by_xdp_socket(answering(struct.pack("=6Q", 7, 1, 2, 5000, 9, 4))) == 5007


def test_before_linux_5_9_a_full_ring_is_among_what_was_dropped() -> None:
    assert socket_backlog.refused_by_xdp_socket(answering(struct.pack("=3Q", 5007, 1, 2))) == 5007


def test_rings_are_where_their_socket_is_mapped() -> None:
    places = socket_backlog.mapped(MAPS)
    assert places[10242850, 0] == 0x7F232C2E4000, "packets for the program"
    assert places[10242850, 0x80000000] == 0x7F232C2DB000, "packets for the kernel"
