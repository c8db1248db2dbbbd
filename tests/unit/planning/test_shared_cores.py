"""NFs of 0.5c-shared: data threads of two NFs take turns on a core without SMT (1DT/S2PC of the draft)."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.nodes import Sizes
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.cores import allocate, demand, refusal, sized_nfs
from resources.libraries.python.planning.placement.queue_balance import balance
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates, core_usage
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM, cpus
from tests.unit.examples import share
from tests.unit.planning.core_tables import FEASIBLE_HALF, GRID, SLIDES_HALF

PLAIN = cpus(28)
WITHOUT_SMT = Topology.model_validate(
    (document := SIM.model_dump(mode="json"))
    | {
        "nodes": {
            **document["nodes"],
            "DUT1": document["nodes"]["DUT1"] | {"cpus": [{"cpus": "0-27", "cores": "0-27", "socket": 0, "node": 0}]},
        }
    }
)


def cell(rows: int, columns: int, *sizes: str) -> Cell:
    return Cell(
        service_type=ServiceType.CSC,
        nf_chains=rows,
        nf_nodes=columns,
        nf_sizes=tuple(map(NfSize, sizes or ("0.5c-shared",))),
    )


def owners(cores: CoreMap) -> dict[int, list[str]]:
    """Data threads of NFs by CPU."""
    found: dict[int, list[str]] = {}
    for thread in cores.threads:
        if thread.role is ThreadRole.DATA and thread.owner.startswith("nf-"):
            found.setdefault(thread.cpu, []).append(thread.owner)
    return found


def test_the_drafts_cells_take_the_cores_of_half_core_nfs() -> None:
    """Its table has one line for NF-0.5c, with SMT or without."""
    for rows, line in SLIDES_HALF.items():
        assert tuple(core_usage(cell(rows, columns)) for columns in GRID) == line
    found = {
        rows: [columns for columns in GRID if refusal(cell(rows, columns), PLAIN, 0, Sizes()) is None] for rows in GRID
    }
    assert found == FEASIBLE_HALF


def test_two_nfs_take_turns_on_each_core() -> None:
    cores = allocate(cell(2, 2), PLAIN, 0, Sizes())
    assert owners(cores) == {5: ["nf-1-1", "nf-2-1"], 6: ["nf-1-2", "nf-2-2"]}
    assert (cores.shared_cpus, cores.oversubscribed, cores.cores_needed) == ((5, 6), False, 7)
    assert cores.takes_turns("nf-2-1")
    assert not cores.takes_turns("vswitch")


@settings(deadline=None, max_examples=share(100))
@given(
    st.integers(1, 6),
    st.lists(st.sampled_from(["0.5c-shared", "1c", "2c"]), min_size=1, max_size=4),
)
def test_no_other_data_threads_share_a_cpu(rows: int, sizes: list[str]) -> None:
    asked = cell(rows, len(sizes), *sizes)
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


def test_the_last_of_an_odd_number_has_a_core_to_itself_and_the_plan_says_so() -> None:
    plan = make_plan(WITHOUT_SMT, cell(3, 1), cpus(28))
    assert plan.warnings == ("nf-2-1 of 0.5c-shared has a core to itself: no second NF takes turns with it",)


def test_cores_with_siblings_refuse_it() -> None:
    smt = layout([(cpu, cpu % 28, 0, 0) for cpu in range(56)])
    with pytest.raises(PlanError, match=r"all cores of NUMA 0 have two; half a core is 0\.5c there"):
        allocate(cell(1, 2), smt, 0, Sizes(), oversubscribe=True)
    with pytest.raises(PlanError, match=r"needs SMT .* and SMT is off"):
        allocate(cell(1, 2, "0.5c"), PLAIN, 0, Sizes())


def test_of_unequal_cores_those_with_one_thread_are_shared() -> None:
    pairs = [(cpu, cpu, 0, 0) for cpu in range(10)] + [(cpu + 20, cpu, 0, 0) for cpu in range(6)]
    mixed: CpuLayout = layout(pairs)
    cores = allocate(cell(1, 3, "0.5c-shared", "0.5c-shared", "1c"), mixed, 0, Sizes())
    assert [len(core) for core in cores.physical if set(core) & set(cores.shared_cpus)] == [1]


def test_the_matrix_names_turns_and_marks_them_as_intended() -> None:
    selection = parse_selection(service_types="CSC", cells="{1,2,3}x1", nf_sizes="0.5c-shared,0.5c", vswitch="1")
    rows = {(str(row.cell.dimensions), row.cell.size_name): row for row in candidates(WITHOUT_SMT, PLAIN, selection)}
    two, three = rows["2x1", "0.5c-shared"], rows["3x1", "0.5c-shared"]
    assert two.balance is not None and three.balance is not None
    assert two.balance.siblings() == ("data threads of two NFs each take turns on 1 physical core (1DT/S2PC)",)
    assert two.balance.even
    assert not three.balance.even, "one NF of it has twice the time"
    assert not rows["2x1", "0.5c"].runs


def test_turns_on_a_folded_plan_are_no_reason_to_call_it_even() -> None:
    small = cpus(2)
    cores = allocate(cell(2, 2), small, 0, Sizes(), oversubscribe=True)
    assert cores.oversubscribed
    assert not balance(cell(2, 2), cores).even


def test_it_is_deployed_and_recorded() -> None:
    asked = MeasurementRequest(
        test_type=TestType.MRR, cell=cell(2, 1), frame=frame("64B"), profile=profile("quick,mrr=1,mrr_trial=0.1")
    )
    test = DensityTest(WITHOUT_SMT, make_testbed(WITHOUT_SMT), asked, NOWHERE)
    test.deploy()
    test.verify_traffic()
    test.mrr()
    test.remove()
    plan = test.draft.plan
    assert plan is not None
    kept = [row for row in test.draft.affinity if row.owner.startswith("nf-")]
    assert kept
    assert {cpu for row in kept for cpu in row.actual_cpus} == set(plan.cores.shared_cpus)
    assert test.draft.verdict is not None
    assert VerdictKind.OVERSUBSCRIBED not in test.draft.verdict.kinds
    assert plan.cores.model_validate_json(plan.cores.model_dump_json()).shared_cpus == plan.cores.shared_cpus
    assert "NF_0.5C-SHARED" in plan.tags
    one = make_plan(WITHOUT_SMT, cell(2, 1, "1c"), cpus(28))
    assert plan.suite_id != one.suite_id, "both have one data thread for each NF"
