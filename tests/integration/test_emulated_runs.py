"""Whole runs of the suites on PCI ports: DPDK, huge pages and vhost-user on the DUT, a reset, a kill, a resumed run."""

import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.emulated import RING, Emulated
from tests.integration.redfish_bmc import PASSWORD, PASSWORD_VARIABLE, Bmc, emulator
from tests.integration.robot_runs import events, going_on, results, run_robot, variables

pytestmark = [pytest.mark.root, pytest.mark.emulated]
SHORT = variables("CELLS:1x1 NF_SIZES:1c SEARCH:quick,width=0.5,sum=1,time=60,latency=0.5 NOISE_FLOOR:0.1 LOSSES:0.5")
SHORT += ("-v", "ENERGY:4", "--suite", "csc-ndrpdr")
WITHIN_S = 300.0
WATTS = 244.0
"""Of the DUT, in two parts of its chassis."""
STATE = """
find /sys/bus/pci/devices/*/ -maxdepth 1 -name driver -printf "%h %l\\n"
grep -H . /sys/class/net/*/address /sys/class/net/*/mtu /sys/devices/system/node/node*/hugepages/*/free_hugepages
for folder in /run/netns /dev/hugepages; do ls -A $folder 2>/dev/null || true; done
cat /run/csit-density/owner.json 2>/dev/null || true
pgrep -l 'ovs|testpmd' || true
pgrep -f '[s]tart.py' >/dev/null && echo agent || true
"""
"""What a run may leave: drivers and names of ports, huge pages and their files, namespaces, its record, processes."""

TUNE = "ethtool -L enp65s0 combined {}; ethtool -G enp65s0 rx {} tx {}"
SETTINGS = "ethtool -l enp65s0; ethtool -g enp65s0; ethtool -c enp65s0"
"""Of a port, which its driver forgets when it loses the port."""


@pytest.fixture
def bmc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bmc]:
    """The DUT's, which this machine asks: a machine of QEMU has none."""
    pytest.importorskip("sushy_tools", reason="sushy-tools are not installed (requirements-dev.txt)")
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with emulator(tmp_path, "Power") as made:
        yield made


def state(emulated: Emulated) -> dict[str, str]:
    return {name: emulated.shell(name, STATE) for name in emulated.nodes}


def wait_for_state(emulated: Emulated, wanted: Mapping[str, str]) -> None:
    def missing() -> str:
        now = state(emulated)
        changed = {name: set(now[name].splitlines()) ^ set(wanted[name].splitlines()) for name in wanted}
        return "; ".join(f"{name}: {line}" for name, lines in changed.items() for line in sorted(lines))

    wait_until("nodes as they were", missing, WITHIN_S, pause_s=2.0)


def wait_for_deployment(emulated: Emulated, run: "subprocess.Popen[str]", output: Path, attempts: int) -> None:
    """Wait until the DUT's NFs run with its ports on vfio-pci, in the test's so many-th attempt."""

    def missing() -> str:
        if run.poll() is not None:
            pytest.fail(f"the run has ended: {run.communicate()[0]}")
        begun = sum(row["event"] == "started" for row in events(output))
        if begun < attempts:
            return f"its journal has {begun} attempts"
        seen = emulated.shell("DUT1", "ls /sys/bus/pci/drivers/vfio-pci || true; pgrep testpmd || true").split()
        ready = {"0000:41:00.0", "0000:42:00.0"} < set(seen) and seen[-1].isdigit()  # its pid
        return "" if ready else f"vfio-pci and testpmd on the DUT: {seen}"

    wait_until(f"deployment {attempts}", missing, WITHIN_S, pause_s=2.0)


def test_open_vswitch_with_dpdk_is_measured_through_a_reset_and_a_kill(
    emulated: Emulated, bmc: Bmc, tmp_path: Path
) -> None:
    dut = {"vswitch": "ovs", "containers": ["testpmd"], "ovs": {"socket_memory_mb": 256}, "energy": bmc.settings(0.1)}
    topology = emulated.write_topology(tmp_path, nodes={"DUT1": dut, "TG": RING})
    before, output, started = state(emulated), tmp_path / "out", emulated.boot_id("DUT1")
    words = ("-v", f"TOPOLOGY:{topology}", *SHORT)
    with going_on(output, *words) as run:
        wait_for_deployment(emulated, run, output, 1)
        emulated.reset("DUT1")
        wait_for_deployment(emulated, run, output, 2)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=600)
    assert emulated.boot_id("DUT1") != started
    (broken,) = (row for row in events(output) if row["event"] == "broken")
    assert "DUT1" in broken["reason"]
    wait_for_state(emulated, before)
    fresh = emulated.shell("DUT1", SETTINGS)
    emulated.shell("DUT1", TUNE.format(1, 512, 128))  # not before: a reset makes them the driver's again
    tuned = emulated.shell("DUT1", SETTINGS)
    assert "RX:\t\t512" in tuned and "Combined:\t1" in tuned
    run_robot(output, *words, "-v", f"RESUME:{output}")
    wait_for_state(emulated, before)
    after = emulated.shell("DUT1", SETTINGS)
    emulated.shell("DUT1", TUNE.format(2, 1024, 256))
    assert after == tuned
    assert emulated.shell("DUT1", SETTINGS) == fresh
    (row,) = results(output)
    assert row.ndr
    assert row.pdr
    assert row.ndr.complete
    # The throughput at one and the same load is lower for PDR, which may have counted trials with losses.
    assert row.ndr.lower_pps
    assert row.pdr.lower_pps
    assert 100 < row.ndr.lower_pps <= row.pdr.lower_pps
    # Counted by the XDP program on the TG's PCI ports.
    assert [losses.label for losses in row.losses[:2]] == ["NDR", "PDR"], row.loss_patterns
    for losses in row.losses:
        assert [(flow.instance, flow.direction.value) for flow in losses.flows] == [(1, "forward"), (1, "reverse")]
        assert all(flow.sent > 0 and 0 <= flow.lost <= flow.sent for flow in losses.flows)
    assert row.energy and {each.node for load in row.energy.loads for each in load.nodes} == {"DUT1"}
    assert {each.watts for load in row.energy.loads for each in load.nodes} == {WATTS}
    found, joules = row.energy.at("PDR50"), row.energy.joules_per_packet("PDR50")
    assert found and joules and joules[0] == pytest.approx(WATTS / found.received_pps)
    assert row.facts["vswitch"]["physical ports"] == ", ".join(
        f"0000:4{number}:00.0 by DPDK (vfio-pci)" for number in (1, 2)
    )
    assert "vhost-user" in row.facts["functions"]["testpmd"]
    assert {(each.planned_cpu,) for each in row.affinity} == {each.actual_cpus for each in row.affinity}
    assert {each.machine for each in row.noise} == {None, "TG"}
    assert all(each.real_time and each.interrupts for each in row.noise)
    assert row.environment.kernel.startswith("6.1.")
