"""Kinds of cores are not mixed, and the data cores of a service instance share a last-level cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout, parse_lscpu, ranked
from resources.libraries.python.model.testbed.nodes import DutNode, Sizes
from resources.libraries.python.planning.placement.core_notes import core_notes, mixed_kinds
from resources.libraries.python.planning.placement.cores import allocate
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.core_tables import cell
from tests.unit.planning.labs import lab

HYBRID = layout(
    [(cpu, cpu // 2, 0, 0) for cpu in range(12)] + [(cpu, cpu - 6, 0, 0) for cpu in range(12, 22)],
    ranked({**dict.fromkeys(range(12), 5100.0), **dict.fromkeys(range(12, 20), 3800.0), 20: 2500.0, 21: 2500.0}),
)
"""Six performance cores of two threads, eight efficiency cores and two low-power ones."""
PERFORMANCE, EFFICIENCY, LOW_POWER = range(12), range(12, 20), range(20, 22)


def ccx(groups: int = 8, each: int = 4) -> CpuLayout:
    """Cores in groups with a last-level cache of their own."""
    rows = [(cpu, cpu, 0, 0) for cpu in range(groups * each)]
    return layout(rows, last_caches={cpu: cpu // each for cpu in range(groups * each)})


def data(cores: CoreMap) -> set[int]:
    return {thread.cpu for thread in cores.threads if thread.role is ThreadRole.DATA}


def instances(cores: CoreMap, asked: Cell) -> list[list[int]]:
    """CPUs of the data threads of each instance."""
    of = [[f"nf-{row}-{node}" for node in range(1, asked.nf_nodes + 1)] for row in range(1, asked.nf_chains + 1)]
    return [[cpu for name in names for cpu in cores.cpus(name)] for names in of]


def test_kinds_are_told_apart_by_their_frequencies() -> None:
    assert {HYBRID.kinds[cpu] for cpu in PERFORMANCE} == {0}
    assert {HYBRID.kinds[cpu] for cpu in EFFICIENCY} == {1}
    assert {HYBRID.kinds[cpu] for cpu in LOW_POWER} == {2}
    assert ranked({0: 3700, 1: 3500, 2: 3400}) == {}, "favoured cores are no kind of their own"
    assert HYBRID.kinds_in_words(HYBRID.cores(0)) == ("6 performance, 8 efficiency and 2 low-power efficiency cores")


def test_data_threads_are_on_performance_cores_and_main_threads_on_others() -> None:
    cores = allocate(cell(1, 2), HYBRID, 0, Sizes())
    assert data(cores) <= set(PERFORMANCE)
    assert {thread.cpu for thread in cores.threads if thread.role is ThreadRole.MAIN} == {20, 21}
    assert core_notes(cell(1, 2), cores, {"DUT1": HYBRID}) == ("data threads are on performance cores",)


def test_more_data_threads_than_performance_cores_are_on_efficiency_cores_all_of_them() -> None:
    asked = cell(2, 3)
    cores = allocate(asked, HYBRID, 0, Sizes())
    assert data(cores) <= set(EFFICIENCY)
    assert core_notes(asked, cores, {"DUT1": HYBRID}) == ("data threads are on efficiency cores",)


def test_kinds_are_mixed_only_where_none_has_enough_and_the_plan_says_so() -> None:
    asked = cell(2, 4)
    cores = allocate(asked, HYBRID, 0, Sizes())
    (said,) = mixed_kinds(cores, {"DUT1": HYBRID})
    assert said == ("data threads are on 5 performance and 4 efficiency cores: no kind has the 9 cores that they need")
    plan = make_plan(lab(discriminator="mac"), asked, {"DUT1": HYBRID})
    assert said in plan.warnings


def test_halves_are_on_cores_with_two_threads() -> None:
    asked = cell(1, 2, "0.5c")
    cores = allocate(asked, HYBRID, 0, Sizes())
    assert data(cores) <= set(PERFORMANCE)
    turns = cell(1, 2, "0.5c-shared")
    assert data(allocate(turns, HYBRID, 0, Sizes())) <= set(EFFICIENCY), "they take turns on cores of one thread"


def test_an_instance_shares_a_last_level_cache_where_it_fits() -> None:
    asked = cell(4, 3)
    cores = allocate(asked, ccx(), 0, Sizes())
    assert [{cpu // 4 for cpu in cpus} for cpus in instances(cores, asked)] == [{2}, {3}, {4}, {5}]
    assert core_notes(asked, cores, {"DUT1": ccx()}) == (
        "the data threads of each service instance share a last-level cache",
    )
    wide = cell(2, 3, vs_dtc=4)
    vswitch = {cpu // 4 for cpu in allocate(wide, ccx(), 0, Sizes()).cpus("vswitch")}
    assert len(vswitch) == 1, "nor are the vSwitch's cores in two"


def ccx_of_pairs(groups: int = 8, each: int = 4) -> CpuLayout:
    """The same with two threads on each core, the siblings in the second half of the numbers."""
    count = groups * each
    rows = [(cpu, cpu % count, 0, 0) for cpu in range(2 * count)]
    return layout(rows, last_caches={cpu: cpu % count // each for cpu in range(2 * count)})


@pytest.mark.parametrize("size", ["0.5c", "0.5c-shared", "1c+0.5c"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (4, 8), (4, 3), (3, 3), (4, 1), (6, 2)])
def test_an_instance_of_half_cores_shares_a_last_level_cache_where_it_fits(size: str, rows: int, columns: int) -> None:
    """Also one with an odd number of NFs, which shares a core with the next instance."""
    sizes = [size] if "+" not in size else [size.split("+")[node % 2] for node in range(columns)]
    asked = cell(rows, columns, *sizes)
    machine = ccx(20, 8) if size == "0.5c-shared" else ccx_of_pairs(20, 8)
    cores = allocate(asked, machine, 0, Sizes())
    for cpus in instances(cores, asked):
        assert len({machine.last_caches[cpu] for cpu in cpus}) == 1
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
    assert found(*({**row, "cores_per_cache": 4} for row in rows)) == ccx_of_pairs()
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
        rows_of_pairs = [(cpu, cpu % 80, 0, 0) for cpu in range(160)]
        machine = layout(rows_of_pairs, last_caches={cpu: cpu % 80 // each for cpu in range(160)})
    cores = allocate(asked, machine, 0, Sizes())
    cpus = [thread.cpu for thread in cores.threads if thread.role is ThreadRole.DATA]
    assert len(set(cpus)) == len(cpus)
    assert not cores.oversubscribed


ROWS = ["0,0,0,0,,0,0,0,0", "1,1,0,0,,1,1,1,0", "2,2,0,0,,2,2,2,1", "3,3,0,0,,3,3,3,1"]
HEADING = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3"


@pytest.mark.parametrize("heading", [HEADING, "", "# ЦП,Ядро,Сокет,Узел,,L1d,L1i,L2,L3"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_last_level_caches_are_read_from_lscpu(heading: str, end: str) -> None:
    found = parse_lscpu(end.join(filter(None, [heading, *ROWS])))
    assert found.last_caches == {0: 0, 1: 0, 2: 1, 3: 1}
    assert parse_lscpu("\n".join([HEADING.removesuffix(",L3"), "0,0,0,0,,0,0,0", "1,1,0,0,,1,1,1"])).last_caches == {
        0: 0, 1: 1,
    }  # fmt: skip


def test_kinds_are_read_from_lscpu() -> None:
    heading = "# CPU,Core,Socket,Node,MaxMHz"
    assert parse_lscpu(f"{heading}\n0,0,0,0,5100.0000\n1,1,0,0,3800.0000\n").kinds == {0: 0, 1: 1}
    assert parse_lscpu(f"{heading}\n0,0,0,0,5100.0000\n1,1,0,0,-\n").kinds == {}


def test_kinds_of_a_hybrid_processor_are_read_from_lscpu_without_frequencies() -> None:
    pairs = [f"{cpu},{cpu // 2},0,0" for cpu in range(8)]
    assert parse_lscpu("\n".join([*pairs, "8,4,0,0", "9,5,0,0"])).kinds == {**dict.fromkeys(range(8), 0), 8: 1, 9: 1}
    assert parse_lscpu("\n".join([*pairs, "8,4,0,0", "10,5,0,0"])).kinds == {}, "siblings are offline"
    assert parse_lscpu("\n".join([*pairs, "8,4,0,0"])).kinds == {}
    assert parse_lscpu("0,0,0,0\n1,1,0,0\n2,2,0,0\n3,0,0,0\n").kinds == {}, "siblings in halves"


def test_a_cpu_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="CPU 0 is there more than once"):
        parse_lscpu("0,0,0,0\n0,1,0,0\n")
