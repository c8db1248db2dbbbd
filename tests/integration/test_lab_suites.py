"""The density suites over SSH: the same suites as on a laptop, on nodes of a lab."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.functions.vm.image import image
from resources.libraries.python.drivers.functions.wireguard.driver import in_kernel
from resources.libraries.python.drivers.functions.wireguard.driver import missing as wireguard_missing
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder
from resources.libraries.python.drivers.probes.call_stacks import why_unsampled
from resources.libraries.python.model.measurements.energy import IDLE
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.studies.density.model import DensityRecord
from tests.captures import MIX6, pcap
from tests.integration.energy_counters import counter
from tests.integration.lab import Lab
from tests.integration.lab_faults import STEP_FAULTS, agent_is_killed, run_losing_nodes
from tests.integration.lab_runs import RT_LIMIT, needs_lab, options, state, topology_of, wait_for_state
from tests.integration.pauses import SENDING, Moment
from tests.integration.redfish_bmc import PASSWORD, PASSWORD_VARIABLE, emulator
from tests.integration.robot_runs import SUITES, results, run_robot, small_suite, study_record, variables

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
NO_NFT = "; ".join(map(str, nft_missing()))
NO_WIREGUARD = "; ".join(map(str, wireguard_missing(in_kernel=in_kernel())))
NO_PERF = str(why_unsampled() or "")
NO_VMS = "; ".join(map(str, vm_missing()))
DUT = {} if NO_VMS else {"vms": "qemu", "vm": {"accelerator": "tcg"}}
"""Without the trial of KVM, which a node makes once per start."""
SERVICES = [each for each in ServiceType if not (NO_VMS and each is ServiceType.VSC)]
SEARCH = "SEARCH:quick,width=0.2,sum=0.3,time=4,latency=0.2,mrr=1,mrr_trial=0.1"
SHORT = variables(SEARCH, "CELLS:1x1 NOISE_FLOOR:0.1 LOSSES:0.3 ENERGY:1 BACK_TO_BACK:1")
SHORT += () if NO_PERF else ("-v", "STACKS:1")
BMC = "Power"
WATTS = {"TG": 41.0, "DUT1": 244.0}
"""By a counter of the node itself, and by Redfish, which this machine asks."""
POWERCAP = Path("/sys/class/powercap")
MAKE_POWERCAP = """
aside=/run/lab-classes
mkdir $aside
mount -n -t tmpfs csit-lab $aside
for class in /sys/class/*; do mkdir $aside/${class##*/} && mount -n --rbind $class $aside/${class##*/}; done
mount -n --move $aside /sys/class
rmdir $aside
"""
"""Put the classes of a node's sysfs beside each other in a file system that takes one more."""
ASKED = {("CSC", test.value) for test in TestType} | {(service.value, "MRR") for service in SERVICES}
"""Every kind of test, and every kind of service: what else they have in common is not of the lab."""


@pytest.fixture(scope="module", autouse=True)
def _limit_stays() -> Iterator[None]:
    before = RT_LIMIT.read_text(encoding="ascii")
    yield
    assert RT_LIMIT.read_text(encoding="ascii") == before


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if not NO_VMS:
        image(cache_folder())  # here: the nodes, which share the cache, have no network to fetch its packages from
    with Lab(used=True) as made:
        yield made


@pytest.fixture(scope="module")
def rows(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], DensityRecord]:
    """Records of one run of several suites, by service type and test type."""
    folder = tmp_path_factory.mktemp("suites")
    suites = (word for service, test in sorted(ASKED) for word in ("--suite", f"{service}-{test}".lower()))
    with ExitStack() as stack:
        lab.nodes["TG"].run("sh", "-ec", MAKE_POWERCAP)
        stack.enter_context(counter(POWERCAP, WATTS["TG"], lab.nodes["TG"].inside))
        bmc = stack.enter_context(emulator(folder, BMC))
        stack.enter_context(pytest.MonkeyPatch.context()).setenv(PASSWORD_VARIABLE, PASSWORD)
        topology = topology_of(lab, folder, DUT1=DUT | {"energy": bmc.settings(0.1)})
        words = options(topology, *SHORT, *suites)
        before = state(lab)
        run_robot(folder / "out", *words)
        wait_for_state(lab, before)
    return {(row.cell.service_type.value, row.asked.test_type.value): row for row in results(folder / "out")}


def test_ipv6_and_packets_of_a_capture_are_measured_on_nodes(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "six.pcap"
    file.write_bytes(pcap(MIX6))
    words = variables("CELLS:1x1", f"FRAMES:128B-1000f,pcap:{file}", "IP_VERSION:6")
    topology = topology_of(lab, tmp_path)
    run_robot(tmp_path / "out", *options(topology, *words, "--suite", "csc-mrr"))
    own, plain = sorted(results(tmp_path / "out"), key=lambda row: row.asked.frame.capture is None)
    assert (plain.asked.frame.name, own.asked.frame.ip_version) == ("128B-ip6-1000f", 6)
    assert own.asked.frame.capture and own.asked.frame.capture.packets == len(MIX6)
    for row in (own, plain):
        assert row.passed and row.plan and ":" in row.plan.flows[0].source_ip
        assert row.mrr and row.mrr.mean_pps > 1000
        assert all(flow.received for flow in row.trials[-1].flows)


@pytest.mark.skipif(bool(NO_PERF), reason=NO_PERF)
def test_call_stacks_are_sampled_on_the_dut(rows: dict[tuple[str, str], DensityRecord]) -> None:
    row = rows["CSC", "NDRPDR"]
    assert row.stacks is not None, row.warnings
    (node,) = row.stacks.nodes
    assert node.node == "DUT1" and node.sampled_s > 0.9
    assert {"nf-1-1", "vswitch"} <= {stack.partition(";")[0] for stack in node.stacks}


def test_every_kind_of_suite_measures_real_packets(rows: dict[tuple[str, str], DensityRecord]) -> None:
    assert set(rows) == ASKED
    assert all(row.passed and not row.simulated and not row.broken for row in rows.values())
    for row in rows.values():
        received = {
            (flow.instance, flow.direction.value) for trial in row.trials for flow in trial.flows if flow.received
        }
        assert received == {(1, "forward"), (1, "reverse")}
    for service in SERVICES:
        mrr = rows[service.value, "MRR"].mrr
        assert mrr and mrr.mean_pps > 1000
    found = rows["CSC", "NDRPDR"]
    assert found.ndr and found.pdr
    assert [each.label for each in found.losses[:2]] == ["NDR", "PDR"], found.loss_patterns
    for flow in (flow for each in found.losses for flow in each.flows):
        assert flow.sent > 0 and flow.received == flow.sent - flow.lost and flow.order.unknown is None
    probes = [flow for load in rows["CSC", "LATENCY"].latency for flow in load.flows if flow.received]
    assert probes and all(flow.p50_ns and 1_000 < flow.p50_ns < 100_000_000 for flow in probes)


@pytest.mark.skipif(bool(NO_VMS), reason=NO_VMS)
def test_virtual_machines_are_made_on_the_node(rows: dict[tuple[str, str], DensityRecord]) -> None:
    row = rows["VSC", "MRR"]
    assert row.plan and row.plan.machines["nf-1-1"] == "DUT1"
    assert row.facts["functions"]["guest kernel"]
    assert VerdictKind.EMULATED in row.verdict.kinds
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)


def test_records_say_where_they_were_measured(rows: dict[tuple[str, str], DensityRecord]) -> None:
    row = rows["CSC", "NDRPDR"]
    assert row.world.value == "lab"
    assert row.plan and row.plan.machines == {"generator": "TG", "vswitch": "DUT1", "nf-1-1": "DUT1"}
    assert row.environment.hostname == "dut1"
    assert row.environment.versions["numpy"] and row.environment.versions["MLRsearch"]
    assert {name: node.hostname for name, node in row.environment.nodes.items()} == {"TG": "tg"}
    assert row.environment.settings["/proc/sys/kernel/sched_rt_runtime_us"] == "-1"
    assert row.facts["generator"]["sending"] == "XDP live frames"
    assert row.facts["vswitch"]["scheduling"].startswith("threaded NAPI")
    assert {each.owner for each in row.affinity} == {"vswitch", "nf-1-1"}
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)
    assert row.located and row.located.usage
    assert {each.machine for each in row.noise} == {None, "TG"} and all(each.real_time for each in row.noise)
    assert row.trials and all(0 < each.total_duration_s - each.offered_duration_s < 10 for each in row.trials)
    if row.back_to_back is None:  # the path is as fast as the generator
        assert [text for text in row.warnings if text.startswith("back-to-back")], row.warnings
        return
    assert row.back_to_back.mean_frames > 1 and row.ndr and row.ndr.lower_pps
    assert row.back_to_back.offered_pps > row.ndr.lower_pps


def test_the_power_of_each_node_is_read_there_or_from_its_bmc(rows: dict[tuple[str, str], DensityRecord]) -> None:
    found = rows["CSC", "NDRPDR"].energy
    assert found and not found.unmetered and found.duts == ("DUT1",)
    assert [each.label for each in found.loads] == [IDLE, "PDR0", "PDR10", "PDR50", "PDR90"]
    for each in found.loads:
        assert {node.node: node.watts for node in each.nodes} == pytest.approx(WATTS, rel=0.1), each.remark
    row, joules = found.at("PDR50"), found.joules_per_packet("PDR50")
    assert row and joules and joules[0] == pytest.approx(WATTS["DUT1"] / row.received_pps, rel=0.1)


@pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT)
def test_a_firewall_behind_a_router_and_a_tunnel_are_made_on_the_node(lab: Lab, tmp_path: Path) -> None:
    before, kinds = state(lab), ["linux_router", "linux_firewall"]
    tunnel = [] if NO_WIREGUARD else ["wireguard"]
    topology = topology_of(lab, tmp_path, DUT1={"containers": kinds + tunnel})
    chosen = ",".join(["+".join(kinds), *(f"{each}+linux_router" for each in tunnel)])
    words = ("-v", "CELLS:1x2", "-v", f"NF_KINDS:{chosen}", "-v", "FRAMES:128B", "--suite", "csp-mrr")
    run_robot(tmp_path / "out", *options(topology, *words))
    wait_for_state(lab, before)
    row, *encrypted = sorted(results(tmp_path / "out"), key=lambda each: "wireguard" in each.asked.cell.nf_kinds)
    assert len(encrypted) == len(tunnel)
    for each in encrypted:
        assert each.mrr and each.mrr.mean_pps > 100
        assert "ChaCha20-Poly1305" in each.facts["functions"]["wireguard"]
    assert row.test_name.endswith("-lnxip4+lnxfw-mrr") and row.mrr and row.mrr.mean_pps > 1000
    assert row.facts["functions"]["linux_firewall"].endswith(", 100 rules for every packet of either direction")
    assert row.drivers["containers"] == "linux_router, linux_firewall"
    assert row.located and row.located.usage and row.plan
    assert {thread.owner for thread in row.located.usage.threads} == {"vswitch", "nf-1-1", "nf-1-2"}
    assert {each.cpu for each in row.located.usage.cpus} == {each.cpu for each in row.plan.cores.on(None)}


def test_a_service_is_swept_over_ssh_as_on_a_laptop_also_when_a_node_is_lost(lab: Lab, tmp_path: Path) -> None:
    topology = topology_of(lab, tmp_path)
    words = (*variables(f"TOPOLOGY:{topology}", "SWEEP_RATES:2000-4000/2000", "SWEEP_DURATION:1"), "-t", "Router Alone")
    faults = [(Moment(SENDING, call=3), agent_is_killed)]
    run_losing_nodes(lab, tmp_path, faults, *words, sources=[SUITES / "chain.robot"])
    points = study_record(tmp_path / "out").sweep.points
    assert len(points) == 2
    for point in points:
        assert point.flagged is None
        assert point.sender_pps == pytest.approx(point.input_pps, rel=0.05)
        assert point.output_pps > 0
        assert point.delay_s is not None
        assert set(point.cpu) == {"nf-1-1"}


CHAINS = """
name: over SSH
vnfs:
  - {name: router, kind: linux_router}
  - {name: monitor, kind: tcpdump, mode: passive}
policies: [monitor > router]
workloads: {protocols: [UDP], volumes_mbps: [2], frames: [64B]}
duration_s: 1
"""


def test_chains_are_watched_on_the_node_second_by_second_also_when_steps_break(lab: Lab, tmp_path: Path) -> None:
    dut = {"containers": ["linux_router", "tcpdump"]}
    topology = topology_of(lab, tmp_path, DUT1=dut)
    suite = small_suite(tmp_path, "chains", CHAINS)
    run_losing_nodes(lab, tmp_path, STEP_FAULTS, *options(topology), sources=[suite])
    study = study_record(tmp_path / "out").chain_study
    assert [run.chain.order for run in study.runs] == [("router",), ("monitor",), ("monitor", "router")]
    for run in study.runs:
        assert run.failed is None
        assert run.throughput_bps > 0
        assert run.latency_s
        received = {row.owner: row.values for row in run.series if row.feature == "rx_pps"}
        assert set(received) == {*run.chain.order, "vswitch"}
        assert all(value is not None and value > 1000 for (value,) in received.values())
