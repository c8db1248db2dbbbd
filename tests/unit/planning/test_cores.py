"""Core allocation: the published tables come out exactly, and no CPU is ever owned twice."""

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.nodes import Sizes
from resources.libraries.python.planning.placement.cores import allocate, demand, refusal, sized_nfs
from resources.libraries.python.planning.placement.queues import unequal
from resources.libraries.python.studies.density.planning.matrix import core_usage
from tests.builders import cores_of_nfs
from tests.unit.examples import share
from tests.unit.nf_sizes import nf_sizes
from tests.unit.planning.core_tables import DRAFT_1C, FEASIBLE_1C, FEASIBLE_HALF, GRID, SLIDES_1C, SLIDES_HALF, cell


def socket_28(smt: bool = True) -> CpuLayout:
    """One socket of FD.io's testbed: 28 cores, siblings numbered in the second half."""
    rows = [(cpu, cpu, 0, 0) for cpu in range(28)]
    return layout(rows + [(cpu + 28, cpu, 0, 0) for cpu in range(28)] if smt else rows)


def of_nfs(cores: CoreMap) -> dict[str, list[int]]:
    """CPUs of each NF, its main thread's first, as CSIT writes them."""
    rows: dict[str, list[int]] = {}
    for thread in cores.threads:
        if thread.owner.startswith("nf-"):
            rows.setdefault(thread.owner, []).append(thread.cpu)
    return rows


def data_cpus(cores: CoreMap) -> list[int]:
    return [thread.cpu for thread in cores.threads if thread.role is ThreadRole.DATA]


def without(machine: CpuLayout, offline: set[int]) -> CpuLayout:
    """The same machine with CPUs that are offline."""
    return CpuLayout(cpus=tuple(row for row in machine.cpus if row.cpu not in offline))


def hybrid(performance: int, efficient: int) -> CpuLayout:
    """Cores with two threads, numbered as neighbours, then cores with one, as on hybrid desktop processors."""
    rows = [(cpu, cpu // 2, 0, 0) for cpu in range(2 * performance)]
    return layout(rows + [(2 * performance + each, performance + each, 0, 0) for each in range(efficient)])


@pytest.mark.parametrize(("size", "table"), [("1c", SLIDES_1C), ("0.5c", SLIDES_HALF), ("0.5c-shared", SLIDES_HALF)])
def test_the_slides_core_usage_table_comes_out(size: str, table: dict[int, tuple[float, ...]]) -> None:
    for rows, line in table.items():
        assert tuple(core_usage(cell(rows, columns, size)) for columns in GRID) == line


def test_the_drafts_core_usage_table_comes_out() -> None:
    for rows, line in DRAFT_1C.items():
        assert tuple(cores_of_nfs(cell(rows, columns)) for columns in GRID) == line


@pytest.mark.parametrize(
    ("size", "feasible"), [("1c", FEASIBLE_1C), ("0.5c", FEASIBLE_HALF), ("0.5c-shared", FEASIBLE_HALF)]
)
def test_the_feasible_cells_of_28_cores_come_out(size: str, feasible: dict[int, list[int]]) -> None:
    """Half a core is a sibling, or without SMT half of the time."""
    machine = socket_28(smt=size != "0.5c-shared")
    for rows in GRID:
        refusals = {columns: refusal(cell(rows, columns, size), machine, 0, Sizes()) for columns in GRID}
        assert [columns for columns in GRID if refusals[columns] is None] == feasible[rows]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1c", [[3, 5, 33], [4, 6, 34], [31, 7, 35], [32, 8, 36]]), ("0.5c", [[3, 5], [4, 6], [31, 33], [32, 34]])],
)
def test_csits_example_of_2_chains_of_2_comes_out(size: str, expected: list[list[int]]) -> None:
    cores = allocate(cell(2, 2, size), socket_28(), 0, Sizes())
    assert list(of_nfs(cores).values()) == expected


@pytest.mark.parametrize(
    ("asked", "machine", "generator", "why"),
    [
        # CSIT's check lets it through.
        (cell(12, 1, "2c"), socket_28(), 0, "needs 33 cores on NUMA 0, 28 available"),
        (cell(1, 2, "12c"), socket_28(), 1, "needs 29 cores on NUMA 0, 28 available"),
        (cell(2, 4), layout((cpu, cpu, 0, 0) for cpu in range(12)), 0, "needs 15 cores on NUMA 0, 12 available"),
        (cell(2, 4, "0.5c"), hybrid(4, 20), 0, "needs 4 cores with two threads for NFs of 0.5c on NUMA 0, 2 left for"),
    ],
)
def test_cores_beyond_those_of_the_numa_node_are_refused_with_numbers(
    asked: Cell, machine: CpuLayout, generator: int, why: str
) -> None:
    assert str(refusal(asked, machine, 0, Sizes(), generator)).startswith(why)
    with pytest.raises(PlanError, match=why):
        allocate(asked, machine, 0, Sizes(), generator_cores=generator)
    full = allocate(cell(1, 2, "12c", "11c"), socket_28(), 0, Sizes(), generator_cores=1)
    assert full.cores_needed == full.cores_there == 28, "the last core is given"


def test_half_a_core_is_refused_without_siblings_on_the_node_of_the_interfaces() -> None:
    there = [(0, 0, 0, 0), (1, 1, 0, 0), *((2 + cpu, 2 + cpu // 2, 1, 1) for cpu in range(8))]
    for machine in (socket_28(smt=False), layout(there)):
        with pytest.raises(PlanError, match=r"0\.5c needs SMT"):
            allocate(cell(1, 1, "0.5c"), machine, 0, Sizes(), oversubscribe=True)


def test_folded_data_threads_take_the_cores_in_turn_and_those_of_nfs_follow_the_vswitch() -> None:
    two = layout([(0, 0, 0, 0), (1, 1, 0, 0)])
    cores = allocate(cell(2, 2), two, 0, Sizes(), generator_cores=1, oversubscribe=True)
    assert cores.oversubscribed
    assert (cores.cores_needed, cores.cores_there) == (10, 2)
    assert cores.cpus("generator") == (0,)
    assert set(data_cpus(cores)) == {0, 1}
    four = layout([(cpu, cpu, 0, 0) for cpu in range(4)])
    cores = allocate(cell(2, 2, vs_dtc=2), four, 0, Sizes(), generator_cores=1, oversubscribe=True)
    assert cores.cpus("vswitch") == (1, 2)
    assert of_nfs(cores) == {"nf-1-1": [0, 3], "nf-1-2": [0, 1], "nf-2-1": [0, 2], "nf-2-2": [0, 3]}


layouts = st.builds(
    lambda cores, threads, nodes, sequential: layout(
        (core * threads + thread if sequential else thread * cores + core, core, core % nodes, core % nodes)
        for core in range(cores)
        for thread in range(threads)
    ),
    cores=st.integers(1, 64),
    threads=st.sampled_from([1, 2]),
    nodes=st.sampled_from([1, 2]),
    sequential=st.booleans(),
)
cells = st.builds(
    lambda rows, sizes, vs_dtc: cell(rows, len(sizes), *sizes, vs_dtc=vs_dtc),
    rows=st.integers(1, 10),
    sizes=st.lists(nf_sizes, min_size=1, max_size=10),
    vs_dtc=st.sampled_from([1, 2, 4]),
)


@given(asked=cells, machine=layouts, generator=st.integers(0, 2))
def test_an_honest_placement_shares_nothing_but_main_cores_and_takes_cores_in_order(
    asked: Cell, machine: CpuLayout, generator: int
) -> None:
    node = machine.numa_nodes[0]
    try:
        cores = allocate(asked, machine, node, Sizes(), generator_cores=generator)
    except PlanError:
        assert refusal(asked, machine, node, Sizes(), generator) is not None
        return
    data = data_cpus(cores)
    assert len(set(data)) == len(data)
    core_of = {cpu: number for number, core in enumerate(machine.cores(node)) for cpu in core}
    assert {thread.cpu for thread in cores.threads} <= core_of.keys()
    data_cores = {core_of[cpu] for cpu in data}
    others = {core_of[thread.cpu] for thread in cores.threads if thread.role is not ThreadRole.DATA}
    assert not data_cores & others
    assert max(Counter(t.cpu for t in cores.threads if t.role is ThreadRole.MAIN).values()) <= 2
    assert len(data_cores | others) <= cores.cores_needed <= cores.cores_there
    assert demand(asked, Sizes(), generator).total == cores.cores_needed
    # Each NF has all threads of its cores, and two main threads share a core.
    smt = 2 if machine.smt else 1
    for name, size in sized_nfs(asked, 1):
        assert len(cores.cpus(name)) == size.cores * smt
        if size != "0.5c":
            whole = Counter(core_of[cpu] for cpu in cores.cpus(name))
            assert whole == dict.fromkeys(whole, smt) and len(whole) == size.cores
    names = [name for name, _ in sized_nfs(asked, 1)]
    mains = [core_of[cpu] for name in names for cpu in cores.cpus(name, ThreadRole.MAIN)]
    assert len(mains) == len(names) and len(set(mains)) == -(-asked.nf_count // 2)
    # Equal cores are taken one after the other.
    assert cores.cpus("system", ThreadRole.SYSTEM) == (machine.cores(node)[0][0],)
    row = [core_of[cpu] for cpu in (*cores.cpus("generator"), *cores.cpus("vswitch", ThreadRole.MAIN))]
    row += sorted({core_of[cpu] for cpu in cores.cpus("vswitch")})
    row += sorted(set(mains)) + sorted({core_of[cpu] for name in names for cpu in cores.cpus(name)})
    assert row == list(range(1, 1 + len(row)))


@given(asked=cells, machine=layouts)
def test_a_folded_placement_covers_every_thread_and_says_so(asked: Cell, machine: CpuLayout) -> None:
    if not machine.smt and NfSize.HALF in asked.nf_sizes:
        return
    cores = allocate(asked, machine, machine.numa_nodes[0], Sizes(), generator_cores=1, oversubscribe=True)
    assert cores.oversubscribed == (cores.cores_needed > cores.cores_there)
    assert all(cores.cpus(name) for name, _ in sized_nfs(asked, 1))


def test_data_threads_get_p_cores_while_there_are_any_and_the_generator_leaves_them() -> None:
    machine = hybrid(4, 8)
    cores = allocate(cell(1, 1), machine, 0, Sizes(), generator_cores=2)
    single = {core[0] for core in machine.cores(0) if len(core) == 1}
    assert set(cores.cpus("generator")) <= single
    assert not single & set(cores.cpus("vswitch"))
    small, large = (allocate(cell(1, nfs), machine, 0, Sizes()) for nfs in (2, 4))
    folded = allocate(cell(2, 4, "0.5c"), hybrid(4, 20), 0, Sizes(), oversubscribe=True)
    assert folded.oversubscribed and folded.cores_needed <= folded.cores_there, "too few have siblings"
    assert set(data_cpus(small)) == set(range(2, 8)) and unequal(cell(1, 2), small) == ()
    assert not large.oversubscribed
    assert unequal(cell(1, 4), large) == (
        "NFs of 1c have different numbers of data threads: 2 on nf-1-1 nf-1-2, 1 on nf-1-3 nf-1-4",
    )


uneven_layouts = st.one_of(
    st.builds(without, layouts, st.sets(st.integers(0, 127), max_size=20)).filter(lambda machine: machine.cpus),
    st.builds(hybrid, st.integers(0, 24), st.integers(1, 32)),
    st.lists(st.integers(1, 4), min_size=1, max_size=40).map(
        lambda threads: layout(
            (cpu, core, 0, 0) for cpu, core in enumerate(chain(*([core] * count for core, count in enumerate(threads))))
        )
    ),
)


@settings(max_examples=share(300))
@given(asked=cells, machine=uneven_layouts, generator=st.integers(0, 2), oversubscribe=st.booleans())
def test_on_unequal_cores_no_cpu_has_two_data_threads_and_unequal_nfs_are_named(
    asked: Cell, machine: CpuLayout, generator: int, oversubscribe: bool
) -> None:
    node = machine.numa_nodes[0]
    try:
        cores = allocate(asked, machine, node, Sizes(), generator_cores=generator, oversubscribe=oversubscribe)
    except PlanError:
        assert refusal(asked, machine, node, Sizes(), generator) is not None
        return
    data = data_cpus(cores)
    assert set(data) <= {row.cpu for row in machine.cpus if row.node == node}
    if not cores.oversubscribed:
        assert len(set(data)) == len(data)
        beside_data = {cpu for core in machine.cores(node) if set(core) & set(data) for cpu in core}
        assert not {t.cpu for t in cores.threads if t.role is not ThreadRole.DATA} & beside_data
    warnings = " ".join(unequal(asked, cores))
    for size in set(asked.nf_sizes):
        named = [name for name, its in sized_nfs(asked, 1) if its == size]
        counts = {len(cores.cpus(name)) for name in named}
        assert counts and 0 not in counts
        assert all((name in warnings.replace(",", "").split()) == (len(counts) > 1) for name in named)
