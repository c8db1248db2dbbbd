"""Applications in real guests: packets are filtered and counted inside, and all CPU time is charged to the NFs."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nginx.driver import missing as nginx_missing
from resources.libraries.python.drivers.functions.vm import Vm
from resources.libraries.python.drivers.functions.vm.accelerator import missing
from resources.libraries.python.drivers.functions.vm.application_guests import Applications
from resources.libraries.python.drivers.functions.vm.driver import VHOST, VirtualMachines
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.sampler.accounts import TaskAccount, VcpuAccount
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_on
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.request.frames import frame as frame_of
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.sweep.analysis.seconds import work
from tests.builders import shipped
from tests.integration.local_fabric import FRAMES, difference, send
from tests.integration.user_space import deployed as running_on

LACKING = [str(each) for each in missing()]
LACKING += [f"no {name} here" for name in ("nft", "tcpdump", "pktstat", "perl") if path_of(name) is None]
pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))]
BESIDE_OTHERS = Vm(boot_within_s=180.0)
_LOCAL = shipped("local")
TOPOLOGY = _LOCAL.model_copy(
    update={"nodes": {**_LOCAL.nodes, "DUT1": _LOCAL.dut.model_copy(update={"vm": BESIDE_OTHERS})}}
)
REFUSED_SENDER = "198.18.0.1"
"""In the rules of every firewall."""


def vsc(*kinds: NfKind, size: NfSize = NfSize.ONE) -> Cell:
    return Cell(service_type=ServiceType.VSC, nf_chains=1, nf_nodes=len(kinds), nf_kinds=kinds, nf_sizes=(size,))


@contextmanager
def deployed(plan: Plan, machine: MachineLock) -> Iterator[tuple[Fabric, VirtualMachines, Applications]]:
    fabric = Fabric(plan, machine)
    inside = Applications(plan.functions, plan, TOPOLOGY.dut, lambda name: fabric.counters([name]))
    guests = VirtualMachines(plan.functions, plan, fabric, machine, BESIDE_OTHERS, inside=inside)
    with ExitStack() as stack:
        for part in (fabric, LinuxBridge(plan, fabric), guests):
            stack.callback(part.stop)
            part.start()
        yield fabric, guests, inside


def arrive(fabric: Fabric, flow: Flow) -> None:
    """Send frames and wait until all have come back."""
    start = fabric.counters([GENERATOR])
    wanted = {name: FRAMES if name == flow.rx_interface else 0 for name in start}
    fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
    wait_until(f"frames of {flow}", partial(difference, fabric, start, wanted), 30.0)


def test_a_firewall_in_a_guest_filters_and_its_cpu_time_is_charged_to_it(machine: MachineLock) -> None:
    plan = make_plan(TOPOLOGY, vsc(NfKind("qemu_firewall")), discover())
    with deployed(plan, machine) as (fabric, guests, inside):
        tasks = tasks_on(plan, fabric)["nf-1-1"]
        assert len(tasks.vcpus()) == len(plan.cores.cpus("nf-1-1"))
        account, vcpus = TaskAccount(tasks), VcpuAccount(tasks.vcpus())
        before, before_inside = account.read(), vcpus.read()
        for flow in plan.flows:
            arrive(fabric, flow)
        assert inside.looked_up("nf-1-1") == 2 * FRAMES
        after, after_inside = account.read(), vcpus.read()
        account.close()
        vcpus.close()
        # A counter of percent is in percent times seconds.
        of_vcpus = after_inside["guest_cpu_percent"] - before_inside["guest_cpu_percent"]
        of_all = after["cpu_percent"] - before["cpu_percent"]
        assert of_vcpus > 0
        assert of_all > 0.9 * of_vcpus - 2 * 100 / os.sysconf("SC_CLK_TCK")
        assert after["helper_percent"] > before["helper_percent"], "the threads of its ports receive for it"

        came = fabric.counters(["nf-1-1"])["csn1x1i1"]
        refused = plan.flows[0].model_copy(update={"source_ip": REFUSED_SENDER})
        fabric.run_inside(GENERATOR, partial(send, refused, FRAMES))

        def entered() -> str:
            now = fabric.counters(["nf-1-1"])["csn1x1i1"].rx_packets - came.rx_packets
            return "" if now == FRAMES else f"{now} entered"

        wait_until("refused frames", entered, 60.0)
        time.sleep(0.5)  # what should not come out has no moment in which it has not
        now = guests.counters()
        assert (now["csn1x1i2"].tx_packets, inside.looked_up("nf-1-1")) == (FRAMES, 2 * FRAMES), "all were dropped"
        assert guests.problems() == ()
        said = guests.facts()[NfKind("qemu_firewall")]
        assert said.startswith("nftables v")
        assert said.endswith("100 rules for every packet of either direction, in the guest")


@pytest.mark.parametrize("kind", [NfKind("qemu_tcpdump"), NfKind("qemu_pktstat")])
def test_a_monitor_in_a_guest_sees_every_packet(machine: MachineLock, kind: NfKind) -> None:
    plan = make_plan(TOPOLOGY, vsc(kind), discover())
    with deployed(plan, machine) as (fabric, guests, _):
        for flow in plan.flows:
            arrive(fabric, flow)
        # What passes is seen on the way in by one direction, on the way out by the other; each packet once.
        assert guests.processed()["nf-1-1"].packets == 2 * FRAMES
        assert guests.processed()["nf-1-1"].dropped == 0
        arrive(fabric, plan.flows[0])
        assert guests.processed()["nf-1-1"].packets == 3 * FRAMES
        assert guests.problems() == ()


def test_guests_of_several_kinds_are_one_chain(machine: MachineLock) -> None:
    plan = make_plan(TOPOLOGY, vsc(NfKind("qemu_nat"), NfKind("qemu"), NfKind("qemu_tcpdump")), discover())
    with deployed(plan, machine) as (fabric, guests, inside):
        arrive(fabric, plan.flows[0])
        done = guests.processed()
        assert {name: row.packets for name, row in done.items()} == {f"nf-1-{node}": FRAMES for node in (1, 2, 3)}
        assert inside.looked_up("nf-1-1") == FRAMES
        assert guests.problems() == ()


def test_a_guest_of_three_cores_answers_also_where_they_share_a_cpu(machine: MachineLock) -> None:
    plan = make_plan(TOPOLOGY, vsc(NfKind("qemu_firewall"), size=NfSize.of(3)), discover())
    with deployed(plan, machine) as (fabric, guests, inside):
        assert len(tasks_on(plan, fabric)["nf-1-1"].vcpus()) == len(plan.cores.cpus("nf-1-1")) >= 3
        for number, flow in enumerate(plan.flows, 1):
            arrive(fabric, flow)
            assert inside.looked_up("nf-1-1") == number * FRAMES
        assert guests.problems() == ()


def rate(load_pps: float, seconds: float = 1.0) -> Trial:
    """A tenth of what guests in emulation forward whose vCPUs share a CPU with all others: some machines are slow."""
    return Trial(load_pps=load_pps, duration_s=seconds, frame=frame_of("128B"), probe_pps=20.0, purpose="sweep")


@pytest.mark.skipif(path_of("suricata") is None, reason="suricata is not installed")
def test_suricata_in_guests_counts_every_packet_though_it_empties_the_same_counters_each_second() -> None:
    """Inline beside the kernel that routes, and passive at copies of the same packets."""
    tap = Tap(position=1, kind=NfKind("qemu_suricata"))
    with running_on(TOPOLOGY, vsc(NfKind("qemu_suricata")).model_copy(update={"taps": (tap,)})) as deployment:
        sent = 0
        for _ in range(2):
            result = deployment.parts.generator.run(rate(200.0, 1.3))
            assert result.received == result.sent > 200
            sent += result.sent + sum(each.sent for each in result.latency)
            done = dict(deployment.parts.functions.processed())
            assert done == dict.fromkeys(("nf-1-1", "tap-1-1"), ProcessedPackets(sent, 0))
        assert deployment.problems() == ()
        said = deployment.facts()["functions"][NfKind("qemu_suricata")]
        assert re.match(r"suricata \d+\.\d+\S*, detects intrusions by 1000 rules .* alerts, in the guest$", said)


@pytest.mark.skipif(any(nginx_missing()) or path_of("ip") is None, reason="nginx or iproute2 is not installed")
def test_nginx_in_guests_sends_on_load_and_probes_of_both_ways() -> None:
    kinds = (NfKind("qemu_nginx_balancer"), NfKind("qemu_nginx_proxy"))
    with running_on(TOPOLOGY, vsc(*kinds)) as deployment:
        before = deployment.sample()
        result = deployment.parts.generator.run(rate(100.0))
        used = work(deployment.plan, before, deployment.sample(), 1.0).cpu
        assert result.received == result.sent > 75
        assert all(0.01 < sum(used[name]) <= 1 for name in ("nf-1-1", "nf-1-2")), "also where all share a CPU"
        assert all(each.received == each.sent and each.p50_ns for each in result.latency)
        sent = result.sent + sum(each.sent for each in result.latency)
        done = dict(deployment.parts.functions.processed())
        assert done == {"nf-1-1": ProcessedPackets(sent, 0), "nf-1-2": ProcessedPackets(sent, 0)}
        assert deployment.problems() == ()
        facts = deployment.facts()["functions"]
        assert facts[kinds[0]].endswith("sources kept, in the guest")
        assert facts[kinds[1]].endswith("sources its own, in the guest")


@pytest.mark.skipif(not VHOST.exists(), reason=f"this kernel has no {VHOST}")
def test_the_threads_of_vhost_are_charged_to_the_guest(machine: MachineLock) -> None:
    plan = make_plan(TOPOLOGY, vsc(NfKind("qemu_firewall")), discover())
    with deployed(plan, machine) as (fabric, guests, _):
        if guests.facts()["vhost"] != "on":
            pytest.skip(f"vhost is {guests.facts()['vhost']}")
        tasks = tasks_on(plan, fabric)["nf-1-1"]
        names = [(Path("/proc") / str(thread) / "comm").read_text(encoding="utf-8") for thread in tasks.threads()]
        assert any(name.startswith("vhost-") for name in names)
