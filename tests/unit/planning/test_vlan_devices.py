"""VLANs as devices of the kernel: a trunk per cable end, told apart by tag, received by one thread."""

from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.host.nics.cables import Cables
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.model.measurements.counters import Sample, ThreadTime
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.planning.edges import has_vlan_devices
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.usage import usage
from tests.unit.examples import share
from tests.unit.planning.labs import Word, lab

BY_THEMSELVES = ("vpp", "trex")
"""Programs that tag frames themselves."""
Case = tuple[str, int, int, str, str, bool]
"""Service type, instances, DUTs, vSwitch, generator, whether the file has MAC addresses."""
asked = st.tuples(
    st.sampled_from(["CSC", "CSP"]),
    st.integers(1, 5),
    st.integers(1, 2),
    st.sampled_from(["linux_bridge", "vpp", "ovs"]),
    st.sampled_from(["ring", "auto", "trex", "iperf3"]),
    st.booleans(),
)


def planned(case: Case, word: Word = "vlan") -> Plan:
    service, rows, duts, vswitch, generator, with_macs = case
    topology = lab(
        duts,
        rows if word == "link" else 1,
        discriminator=word,
        vswitch=vswitch,
        generator=generator,
        containers="linux_router",
        with_macs=with_macs,
        ovs={"ports": "system"},
    )
    assert has_vlan_devices(topology, topology.dut) == (word == "vlan" and vswitch != "vpp")
    return make_plan(topology, Cell(service_type=ServiceType(service), nf_chains=rows, nf_nodes=1, vs_dtc=2), {})


def ports_of(plan: Plan) -> list[Port]:
    return [port for link in plan.links for port in (link.a, link.b)]


@settings(deadline=None, max_examples=share(30))
@given(asked)
def test_every_trunk_is_one_physical_port_with_a_device_for_each_instance(case: Case) -> None:
    plan, (_, rows, duts, vswitch, generator, _) = planned(case), case
    ports = ports_of(plan)
    names = {port.interface for port in ports}
    for port in ports:
        program = generator if port.owner == "generator" else vswitch
        assert (port.trunk is not None) == (port.nic is not None and program not in BY_THEMSELVES)
        assert port.receiver == (port.trunk or port.interface)
    trunks: dict[str, list[Port]] = {}
    for port in ports:
        if port.trunk:
            trunks.setdefault(port.trunk, []).append(port)
    # A kernel has 15 characters for a name, and leftovers of this project are known by its beginning.
    assert not names & trunks.keys()
    assert all(name.startswith("cs") and len(name) <= 15 for name in trunks)
    sides = (generator not in BY_THEMSELVES) * 2 + (vswitch not in BY_THEMSELVES) * 2 * duts
    assert len(trunks) == sides
    for row in trunks.values():
        assert len({(plan.machines[port.owner], port.nic.port) for port in row if port.nic}) == 1
        assert sorted(port.vlan or 0 for port in row) == [101 + index for index in range(rows)]
        assert len({(port.owner, port.queues) for port in row}) == 1, "one receive thread, on one planned CPU"
    members = {member for segment in plan.segments for member in segment.members}
    assert not members & trunks.keys()
    # What a machine takes is the trunk, what it counts by are the VLAN devices.
    mine = [port for port in ports if port.owner == "generator"]
    cables = Cables(mine, MachineLock(), 1500)
    assert len(cables.physical) == 2
    if generator not in BY_THEMSELVES:
        assert cables.physical == {"csg0p1", "csg0p2"}
        assert cables.names == {port.interface for port in mine}
    else:
        assert cables.physical == cables.names == {"csg1p1", "csg1p2"}


def test_without_vlans_plans_say_nothing_of_trunks() -> None:
    for plan in (
        planned(("CSC", 2, 1, "linux_bridge", "ring", True), "link"),
        planned(("CSC", 2, 1, "linux_bridge", "trex", True), "mac"),
        planned(("CSC", 2, 1, "vpp", "trex", True)),
    ):
        assert "trunk" not in plan.model_dump_json()


def test_the_time_of_a_trunks_thread_counts_once() -> None:
    plan = planned(("CSC", 3, 1, "linux_bridge", "ring", True))
    second = 10**9
    before = Sample({"csv0p1": ThreadTime(0, 0), "csv3x1i1": ThreadTime(0, 0)}, {}, 0, 0)
    after = Sample({"csv0p1": ThreadTime(second // 2, 0), "csv3x1i1": ThreadTime(second // 4, 0)}, {}, 0, 0)
    found = usage(plan, before, after, 1.0)
    assert [(row.owner, row.interface, row.running) for row in found.threads] == [
        ("vswitch", "csv0p1", 0.5),
        ("vswitch", "csv3x1i1", 0.25),
    ]
    (cpu,) = {plan.cores.cpus("vswitch")[port.data_thread] for port in ports_of(plan) if port.trunk == "csv0p1"}
    assert found.threads[0].cpu == cpu
