"""Cores and refusals of labs: each machine on its own CPUs, each lack told with its numbers."""

import pytest

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.findings import Limit
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.cores import layouts_of
from resources.libraries.python.planning.plan import make_plan, no_such_kind
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import cell_of, cpus
from tests.unit.planning.labs import lab


def row_of(topology: Topology, point: str, layouts: dict[str, CpuLayout] | None = None) -> Candidate:
    (row,) = candidates(topology, layouts or {}, parse_selection(service_types="CSC", cells=point, nf_sizes="1c"))
    return row


def test_each_machine_is_planned_on_its_own_cpus() -> None:
    given = {"TG": cpus(8), "DUT1": cpus(16), "DUT2": layout((cpu, cpu % 8, 0, 0) for cpu in range(16))}
    cores = make_plan(lab(2), cell_of("CSC", 1, 2), given).cores
    dut1, dut2, tg = cores.on(None), cores.on("DUT2"), cores.on("TG")
    assert len(dut1) + len(dut2) + len(tg) == len(cores.threads)
    assert {thread.owner for thread in dut1} == {"system", "vswitch", "nf-1-1", "nf-1-2"}
    assert {thread.owner for thread in dut2} == {"system", "vswitch-2", "nf-1-3", "nf-1-4"}
    assert [(thread.role, thread.cpu) for thread in tg] == [  # TRex on polled ports receives by a thread of its own
        (ThreadRole.SYSTEM, 0), (ThreadRole.MAIN, 2), (ThreadRole.MAIN, 3), (ThreadRole.DATA, 1),
    ]  # fmt: skip
    assert cores.cpus("vswitch") == (2,)
    assert cores.cpus("vswitch-2") == (2, 10), "SMT is on there"
    got = (cores.smt, [(each.machine, each.smt) for each in cores.elsewhere])
    assert got == (False, [("DUT2", True), ("TG", False)])
    assert not cores.oversubscribed


def test_a_generator_of_few_cores_has_its_control_thread_beside_the_system() -> None:
    tg = make_plan(lab(tg_cores=2), cell_of(), {}).cores.on("TG")
    got = [(thread.role, thread.cpu) for thread in tg]
    assert got == [(ThreadRole.SYSTEM, 0), (ThreadRole.MAIN, 0), (ThreadRole.DATA, 1)]
    with pytest.raises(PlanError, match="TG: the generator needs 2 cores on NUMA 0, 1 available"):
        make_plan(lab(tg_cores=1), cell_of(), {})
    folded = make_plan(lab(tg_cores=1, oversubscribe=True), cell_of(), {})
    assert folded.cores.oversubscribed
    assert folded.warnings == ("oversubscribed: TG needs 2 cores on NUMA 0, 1 available",)


def test_what_any_machine_lacks_is_reported_with_its_name() -> None:
    row = row_of(lab(2), "1x2", {"TG": cpus(1), "DUT1": cpus(5), "DUT2": cpus(4)})
    got = [(reason.limit, reason.needs, reason.there) for reason in row.reasons]
    assert got == [(Limit.CORES, 6, 5), (Limit.CORES, 6, 4), (Limit.CORES, 2, 1)]
    assert row.reason is not None and "; DUT2 needs 6 cores on NUMA 0, 4 available; TG needs 2 " in row.reason
    assert not row.runs


@pytest.mark.parametrize(("duts", "what"), [(1, "cable pairs"), (2, "cables around")])
def test_more_instances_than_cables(duts: int, what: str) -> None:
    expected = f"needs 3 {what}, one for each instance (discriminator: link), 2 available"
    row = row_of(lab(duts, 2, oversubscribe=True), "3x1")
    assert [(reason.limit, reason.text, reason.needs, reason.there) for reason in row.reasons] == [
        (Limit.LINKS, expected, 3, 2)
    ]
    assert not row.runs, "cables cannot be shared, whatever is true of cores"
    with pytest.raises(PlanError, match=r"testbed lab: needs 3 .* 2 available"):
        make_plan(lab(duts, 2), cell_of("CSC", 3), {})
    assert row_of(lab(duts, 2), "2x1").fits
    assert row_of(lab(duts, 1, discriminator="mac"), "10x1").fits


@pytest.mark.parametrize(
    ("word", "vswitch", "generator", "expected"),
    [
        ("vlan", "ovs", "trex", "Open vSwitch separates VLANs on ports of the kernel only"),
        ("vlan", "linux_bridge", "xdp", "VLAN devices take no XDP frames"),
        ("vlan", "linux_bridge", "ring", None),
        ("vlan", "vpp", "ring", None),
        ("mac", "linux_bridge", "auto", "the built-in generator counts instances by port"),
        ("mac", "ovs", "trex", None),
        ("vlan", "vpp", "trex", None),
        ("link", "linux_bridge", "xdp", None),
    ],
)
def test_what_drivers_cannot_keep_apart_is_refused(
    word: str, vswitch: str, generator: str, expected: str | None
) -> None:
    topology = lab(discriminator=word, vswitch=vswitch, generator=generator, containers="linux_router")  # type: ignore[arg-type]
    row = row_of(topology, "2x1" if word != "link" else "1x1")
    assert row.fits == row.runs == (expected is None)
    if expected is None:
        return
    assert [reason.limit for reason in row.reasons] == [Limit.DISCRIMINATOR]
    assert f"discriminator {word}: {expected}" in (row.reason or "")
    with pytest.raises(PlanError, match=f"discriminator {word}: "):
        make_plan(topology, cell_of("CSC", 2), {})


def test_cpus_to_be_discovered_are_asked_for_by_name() -> None:
    base = lab(2)
    nodes = {name: node.model_copy(update={"cpus": "discover"}) for name, node in base.nodes.items()}
    topology = base.model_copy(update={"nodes": nodes})
    every = r"nodes\.DUT1\.cpus and nodes\.DUT2\.cpus and nodes\.TG\.cpus unknown: .*--cpus DUT1=F.*DUT2=F.*TG=F"
    with pytest.raises(ConfigError, match=every):
        make_plan(topology, cell_of(), {})
    with pytest.raises(ConfigError, match=r": nodes\.DUT2\.cpus and nodes\.TG\.cpus unknown"):
        make_plan(topology, cell_of(), cpus(16))
    assert make_plan(topology, cell_of(), dict.fromkeys(nodes, cpus(16))).cores.cores_there == 16
    assert list(layouts_of(topology, dict.fromkeys(nodes, cpus(2)))) == ["DUT1", "DUT2", "TG"]


def test_a_chain_of_virtual_machines_alone_is_asked_for_as_such() -> None:
    topology = lab(vswitch="linux_bridge", containers="linux_router", vms="qemu")

    def reason(*kinds: NfKind) -> str | None:
        return no_such_kind(topology, cell_of("CSC", 1, len(kinds), nf_kinds=kinds))

    assert reason(NfKind("qemu"), NfKind("linux_router")) is None
    assert reason(NfKind("qemu"), NfKind("qemu_nat")) == (
        "testbed lab has no NFs of kind qemu for a CSC; it has linux_router"
    )
