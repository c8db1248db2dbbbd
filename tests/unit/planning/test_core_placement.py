"""Cores by kind, cache, halves and SMT: what is placed where, and what is refused."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout, parse_lscpu, ranked
from resources.libraries.python.model.testbed.nodes import DutNode, Sizes
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.cores import allocate, cpu_without_data, demand, sized_nfs
from resources.libraries.python.planning.plan import core_notes, make_plan, mixed_kinds
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import SIM, cell_of, cpus
from tests.unit.planning.core_tables import cell
from tests.unit.planning.labs import lab

HYBRID = layout(
    [(cpu, cpu // 2, 0, 0) for cpu in range(12)] + [(cpu, cpu - 6, 0, 0) for cpu in range(12, 22)],
    ranked({**dict.fromkeys(range(12), 5100.0), **dict.fromkeys(range(12, 20), 3800.0), 20: 2500.0, 21: 2500.0}),
)
"""Six performance cores of two threads, eight efficiency cores and two low-power ones."""
PERFORMANCE, EFFICIENCY = range(12), range(12, 20)


def ccx(groups: int = 8, each: int = 4, threads: int = 1) -> CpuLayout:
    """Cores in groups with a last-level cache of their own; siblings are in the second half of the numbers."""
    count = groups * each
    rows = [(cpu, cpu % count, 0, 0) for cpu in range(threads * count)]
    return layout(rows, last_caches={cpu: cpu % count // each for cpu in range(threads * count)})


def data(cores: CoreMap) -> set[int]:
    return {thread.cpu for thread in cores.threads if thread.role is ThreadRole.DATA}


def instances(cores: CoreMap, asked: Cell) -> list[list[int]]:
    """CPUs of the data threads of each instance."""
    of = [[f"nf-{row}-{node}" for node in range(1, asked.nf_nodes + 1)] for row in range(1, asked.nf_chains + 1)]
    return [[cpu for name in names for cpu in cores.cpus(name)] for names in of]


@pytest.mark.parametrize(
    ("asked", "kind", "named"),
    [
        (cell(1, 2), PERFORMANCE, "performance"),
        (cell(1, 2, "0.5c"), PERFORMANCE, "performance"),
        (cell(1, 2, "0.5c-shared"), EFFICIENCY, "efficiency"),  # they take turns on cores of one thread
        (cell(2, 3), EFFICIENCY, "efficiency"),  # all of them, where there are too few performance cores
    ],
)
def test_data_threads_are_on_cores_of_one_kind_and_main_threads_on_others(asked: Cell, kind: range, named: str) -> None:
    assert ranked({0: 3700, 1: 3500, 2: 3400}) == {}, "favoured cores are no kind of their own"
    cores = allocate(asked, HYBRID, 0, Sizes())
    assert data(cores) <= set(kind)
    assert not {thread.cpu for thread in cores.threads if thread.role is ThreadRole.MAIN} & set(kind)
    assert core_notes(asked, cores, {"DUT1": HYBRID}) == (f"data threads are on {named} cores",)


def test_kinds_are_mixed_only_where_none_has_enough_and_the_plan_says_so() -> None:
    asked = cell(2, 4)
    cores = allocate(asked, HYBRID, 0, Sizes())
    (said,) = mixed_kinds(cores, {"DUT1": HYBRID})
    assert said == ("data threads are on 5 performance and 4 efficiency cores: no kind has the 9 cores that they need")
    plan = make_plan(lab(discriminator="mac"), asked, {"DUT1": HYBRID})
    assert said in plan.warnings


def test_the_cores_of_an_instance_and_of_the_vswitch_share_a_last_level_cache_where_they_fit() -> None:
    asked = cell(4, 3)
    cores = allocate(asked, ccx(), 0, Sizes())
    assert [{cpu // 4 for cpu in own} for own in instances(cores, asked)] == [{2}, {3}, {4}, {5}]
    assert len({cpu // 4 for cpu in allocate(cell(2, 3, vs_dtc=4), ccx(), 0, Sizes()).cpus("vswitch")}) == 1


@pytest.mark.parametrize("size", ["0.5c", "0.5c-shared", "1c+0.5c"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (4, 8), (4, 3), (3, 3), (4, 1), (6, 2)])
def test_an_instance_of_half_cores_shares_a_last_level_cache_where_it_fits(size: str, rows: int, columns: int) -> None:
    """Also one with an odd number of NFs, which shares a core with the next instance."""
    sizes = [size] if "+" not in size else [size.split("+")[node % 2] for node in range(columns)]
    asked = cell(rows, columns, *sizes)
    machine = ccx(20, 8) if size == "0.5c-shared" else ccx(20, 8, 2)
    cores = allocate(asked, machine, 0, Sizes())
    for own in instances(cores, asked):
        assert len({machine.last_caches[cpu] for cpu in own}) == 1
    assert core_notes(asked, cores, {"DUT1": machine}) == (
        "the data threads of each service instance share a last-level cache",
    )
    assert not cores.oversubscribed


def test_a_topology_states_kinds_and_cache_groups_of_listed_cpus() -> None:
    def found(*groups: dict[str, object]) -> CpuLayout:
        port = {"link": "link1", "rate_bps": 10**10}
        fields = {"type": "DUT", "vswitch": "sim", "containers": "sim", "interfaces": {"port1": port, "port2": port}}
        return DutNode.model_validate({**fields, "cpus": groups}).layout

    rows = [{"cpus": cpus, "cores": "0-31"} for cpus in ("0-31", "32-63")]
    assert found(*({**row, "cores_per_cache": 4} for row in rows)) == ccx(threads=2)
    hybrid = [
        {"cpus": "0,2,4,6,8,10", "cores": "0-5", "kind": "performance"},
        {"cpus": "1,3,5,7,9,11", "cores": "0-5", "kind": "performance"},
        {"cpus": "12-19", "cores": "6-13", "kind": "efficiency"},
        {"cpus": "20-21", "cores": "14-15", "kind": "low-power efficiency"},
    ]
    assert found(*hybrid).kinds == HYBRID.kinds
    assert found(*hybrid).cores(0) == HYBRID.cores(0)
    assert not found(*rows).kinds
    for wrong in ("kind", "cores_per_cache"):
        with pytest.raises(ValidationError, match=f"{wrong} is stated of some groups only"):
            found({**rows[0], wrong: "efficiency" if wrong == "kind" else 8}, rows[1])


def test_what_fits_in_no_group_is_placed_in_order_and_told() -> None:
    asked = cell(2, 5)
    cores = allocate(asked, ccx(), 0, Sizes())
    assert core_notes(asked, cores, {"DUT1": ccx()}) == (
        "the data threads of 2 of 2 service instances are in several last-level caches",
    )
    alone = layout([(cpu, cpu, 0, 0) for cpu in range(24)], last_caches={cpu: cpu for cpu in range(24)})
    assert allocate(asked, alone, 0, Sizes()) == allocate(asked, layout([(c, c, 0, 0) for c in range(24)]), 0, Sizes())


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 8), st.sampled_from(["1c", "2c", "0.5c", "1c+2c"]))
def test_no_cpu_is_given_twice_whatever_the_groups(rows: int, columns: int, each: int, sizes: str) -> None:
    machine = ccx(-(-80 // each), each).model_copy(
        update={"kinds": {cpu: int(cpu >= 72) for cpu in range(-(-80 // each) * each)}}
    )
    names = sizes.split("+")
    asked = cell(rows, columns, *(names * columns)[:columns] if len(names) > 1 else names)
    if "0.5c" in sizes:
        machine = ccx(-(-80 // each), each, 2)
    cores = allocate(asked, machine, 0, Sizes())
    cpus = [thread.cpu for thread in cores.threads if thread.role is ThreadRole.DATA]
    assert len(set(cpus)) == len(cpus)
    assert not cores.oversubscribed


ROWS = "0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,2,0,0,,2,2,2,1\n3,3,0,0,,3,3,3,1"
HEADING = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3"
PAIRS = "".join(f"{cpu},{cpu // 2},0,0\n" for cpu in range(8))
MHZ = "# CPU,Core,Socket,Node,MaxMHz\n"


@pytest.mark.parametrize("heading", [f"{HEADING}\n", "", "# ЦП,Ядро,Сокет,Узел,,L1d,L1i,L2,L3\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_last_level_caches_are_read_from_lscpu(heading: str, end: str) -> None:
    assert parse_lscpu(f"{heading}{ROWS}".replace("\n", end)).last_caches == {0: 0, 1: 0, 2: 1, 3: 1}
    without_l3 = f"{HEADING.removesuffix(',L3')}\n0,0,0,0,,0,0,0\n1,1,0,0,,1,1,1".replace("\n", end)
    assert parse_lscpu(without_l3).last_caches == {0: 0, 1: 1}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"{MHZ}0,0,0,0,5100.0000\n1,1,0,0,3800.0000\n", {0: 0, 1: 1}),
        (f"{MHZ}0,0,0,0,5100.0000\n1,1,0,0,-\n", {}),
        (f"{PAIRS}8,4,0,0\n9,5,0,0", {**dict.fromkeys(range(8), 0), 8: 1, 9: 1}),  # without frequencies
        (f"{PAIRS}8,4,0,0\n10,5,0,0", {}),  # siblings are offline
        ("0,0,0,0\n1,1,0,0\n2,2,0,0\n3,0,0,0\n", {}),  # siblings in halves
    ],
)
def test_kinds_of_a_hybrid_processor_are_read_from_lscpu(text: str, kinds: dict[int, int]) -> None:
    assert parse_lscpu(text).kinds == kinds


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,0\n2,0,0,0\n3,1,0,\n",
         [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]),
        # As util-linux prints with `lscpu -p -a`: CPU 3 is offline, so nothing is known of it.
        (f"# Each item has an unique ID\n{HEADING}\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,0,0,0,,0,0,0,0\n3,,,,,,,,\n",
         [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0)]),
        ("# Node,Online,CPU,Core,Socket\n0,Y,0,0,0\n0,N,1,1,0\n-1,Y,2,1,-\n", [(0, 0, 0, 0), (2, 1, 0, 0)]),
    ],
)  # fmt: skip
def test_what_lscpu_prints(text: str, rows: list[tuple[int, int, int, int]]) -> None:
    found, expected = parse_lscpu(text), layout(rows)
    assert found.cpus == expected.cpus


NO_LSCPU = ("", "0,0,0\n", "0,0,0,x\n", "99999999999,0,0,0", f"{HEADING}\n0,0,0,0\n", "0,,0,0\n", "# CPU,Core\n0,x\n")


@pytest.mark.parametrize("text", [*NO_LSCPU, "0,0,0,0\n0,1,0,0\n"])
def test_what_lscpu_does_not_print_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"lscpu -p=CPU,CORE,SOCKET,NODE|is no row of|CPU 0 is there more than once"):
        parse_lscpu(text)


PLAIN = cpus(28)
SAID = SIM.model_dump(mode="json")
SAID["nodes"]["DUT1"]["cpus"] = [{"cpus": "0-27", "cores": "0-27", "socket": 0, "node": 0}]
WITHOUT_SMT = Topology.model_validate(SAID)


def turns(rows: int, columns: int, *sizes: str) -> Cell:
    return cell_of("CSC", rows, columns, nf_sizes=tuple(map(NfSize, sizes or ("0.5c-shared",))))


def owners(cores: CoreMap) -> dict[int, list[str]]:
    """Data threads of NFs by CPU."""
    found: dict[int, list[str]] = {}
    for thread in cores.threads:
        if thread.role is ThreadRole.DATA and thread.owner.startswith("nf-"):
            found.setdefault(thread.cpu, []).append(thread.owner)
    return found


@given(st.integers(1, 6), st.lists(st.sampled_from(["0.5c-shared", "1c", "2c"]), min_size=1, max_size=4))
def test_no_other_data_threads_share_a_cpu(rows: int, sizes: list[str]) -> None:
    asked = turns(rows, len(sizes), *sizes)
    cores = allocate(asked, cpus(64), 0, Sizes())  # the most that such cells take, 63
    size_of = dict(sized_nfs(asked, 1))
    for cpu, named in owners(cores).items():
        assert len(named) == (2 if cpu in cores.shared_cpus else 1)
        assert len(named) == 1 or all(size_of[name].is_shared for name in named)
    shared = sum(size.is_shared for size in size_of.values())
    assert len(cores.shared_cpus) == shared // 2
    assert demand(asked, Sizes()).nf_data == ceil(shared / 2) + sum(size.whole_cores for size in size_of.values())
    data = Counter(t.cpu for t in cores.threads if t.role is ThreadRole.DATA)
    assert {cpu for cpu, count in data.items() if count > 1} == set(cores.shared_cpus)


def test_turns_are_taken_on_cores_with_one_thread_alone_at_best_and_the_plan_says_who_takes_none() -> None:
    plan = make_plan(WITHOUT_SMT, turns(3, 1), cpus(28))
    assert plan.warnings == ("nf-2-1 of 0.5c-shared has a core to itself: no second NF takes turns with it",)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan and "NF_0.5C-SHARED" in plan.tags
    assert plan.suite_id != make_plan(WITHOUT_SMT, turns(3, 1, "1c"), cpus(28)).suite_id
    pairs = [(cpu, cpu, 0, 0) for cpu in range(10)] + [(cpu + 20, cpu, 0, 0) for cpu in range(6)]
    mixed: CpuLayout = layout(pairs)
    cores = allocate(turns(1, 3, "0.5c-shared", "0.5c-shared", "1c"), mixed, 0, Sizes())
    assert [len(core) for core in cores.physical if set(core) & set(cores.shared_cpus)] == [1]
    smt = layout([(cpu, cpu % 28, 0, 0) for cpu in range(56)])
    with pytest.raises(PlanError, match=r"all cores of NUMA 0 have two; half a core is 0\.5c there"):
        allocate(turns(1, 2), smt, 0, Sizes(), oversubscribe=True)
    with pytest.raises(PlanError, match=r"needs SMT .* and SMT is off"):
        allocate(turns(1, 2, "0.5c"), PLAIN, 0, Sizes())


def test_the_matrix_names_turns_and_marks_them_as_intended() -> None:
    selection = parse_selection(service_types="CSC", cells="{1,2,3}x1", nf_sizes="0.5c-shared,0.5c", vswitch="1")
    rows = {(str(row.cell.dimensions), row.cell.size_name): row for row in candidates(WITHOUT_SMT, PLAIN, selection)}
    two, three = rows["2x1", "0.5c-shared"], rows["3x1", "0.5c-shared"]
    assert two.balance is not None and three.balance is not None
    assert two.balance.siblings() == ("data threads of two NFs each take turns on 1 physical core (1DT/S2PC)",)
    assert two.balance.even
    assert not three.balance.even, "one NF of it has twice the time"
    assert not rows["2x1", "0.5c"].runs


CELL = cell_of("CSP", 1, 2)


def planned(topology: Topology, smt: bool | None, cell: Cell = CELL) -> Plan:
    return make_plan(topology, cell, {}, smt=smt)


def test_with_smt_off_each_core_has_its_first_thread_only() -> None:
    on, off = planned(SIM, smt=True), planned(SIM, smt=False)
    assert (on.smt_off, off.smt_off) == (False, True)
    assert (on.cores.smt, off.cores.smt) == (True, False)
    assert [len(on.cores.cpus(name)) for name in ("nf-1-1", "nf-1-2")] == [2, 2]
    for owner in ("vswitch", "nf-1-1", "nf-1-2"):
        assert off.cores.cpus(owner) == tuple(cpu for cpu in on.cores.cpus(owner) if cpu < 28), "the same core"
    usual = make_plan(SIM, CELL, {})
    assert digest_of_model(on) == digest_of_model(usual) != digest_of_model(off)
    assert "smt_off" not in usual.model_dump_json()
    with pytest.raises(PlanError, match=r"NF size 0\.5c needs SMT"):
        planned(SIM, smt=False, cell=CELL.model_copy(update={"nf_sizes": (NfSize.HALF,)}))


@pytest.mark.parametrize("duts", [1, 2])
def test_a_generator_of_another_machine_keeps_its_threads(duts: int) -> None:
    topology = lab(duts, smt=True, cores=32, tg_cores=16)
    on, off = (planned(topology, smt=smt, cell=cell_of()) for smt in (True, False))
    machines = {machine.machine: machine.smt for machine in off.cores.elsewhere}
    assert machines == {"TG": True} | ({"DUT2": False} if duts > 1 else {})
    assert off.cores.cpus("generator") == on.cores.cpus("generator")


@pytest.mark.parametrize("smt", [True, False])
def test_a_machine_without_smt_is_refused_in_one_sentence(smt: bool) -> None:
    with pytest.raises(PlanError, match=r"^DUT1 has one thread .*echo on > /sys/devices/system/cpu/smt/control$"):
        planned(lab(1, cores=32), smt=smt, cell=cell_of())
    with pytest.raises(PlanError, match=r"^DUT1 and DUT2 have one thread"):
        planned(lab(2, cores=32), smt=smt, cell=cell_of())


def thread(role: ThreadRole, cpu: int, owner: str = "system") -> Thread:
    return Thread(owner=owner, role=role, index=0, cpu=cpu)


SYSTEM, SENDER = thread(ThreadRole.SYSTEM, 0), thread(ThreadRole.DATA, 0, "generator")


@pytest.mark.parametrize(
    ("threads", "cpu"),
    [
        # The system's CPU is taken also when main threads share it, and not when a data thread does.
        ([thread(ThreadRole.DATA, 1), thread(ThreadRole.MAIN, 4), thread(ThreadRole.SYSTEM, 4)], 4),
        ([SYSTEM, SENDER], None),
        ([SYSTEM, SENDER, thread(ThreadRole.SYSTEM, 1)], 1),
        ([], None),
    ],
)
def test_those_who_watch_get_a_cpu_that_no_packet_needs(threads: list[Thread], cpu: int | None) -> None:
    assert cpu_without_data(threads) == cpu
