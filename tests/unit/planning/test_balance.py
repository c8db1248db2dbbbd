"""Balance of queues and threads: by hand, and against the wiring that decides it."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.placement.queue_balance import Balance, Spread, balance, vswitch_ports
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of
from tests.unit.nf_sizes import nf_sizes

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIM = load_topology(TOPOLOGIES / "sim.yaml")
LOCAL = load_topology(TOPOLOGIES / "local.yaml")
MANY = layout([(cpu, cpu % 400, 0, 0) for cpu in range(800)])
NO_SMT = layout([(cpu, cpu, 0, 0) for cpu in range(400)])


def of(kind: str, chains: int, nodes: int, *sizes: str, vs_dtc: int = 1, smt: bool = True) -> Balance:
    asked = cell_of(kind, chains, nodes, nf_sizes=tuple(NfSize(size) for size in sizes or ("1c",)), vs_dtc=vs_dtc)
    return balance(asked, make_plan(SIM, asked, MANY if smt else NO_SMT).cores)


def test_six_ports_on_four_threads() -> None:
    found = of("CSC", 1, 2, vs_dtc=4, smt=False)
    assert found.vswitch == Spread(6, 4)
    assert (found.vswitch.least, found.vswitch.most, found.even) == (1, 2, False)
    assert "vSwitch: 6 receive queues on 4 data threads, 1 to 2 per thread" in found.uneven()


def test_an_nf_of_two_cores_with_smt_has_two_threads_without_work() -> None:
    found = of("CSP", 1, 1, "2c")
    assert found.nfs == (("2c", Spread(2, 4)),)
    assert "NF-2c: 2 receive queues on 4 data threads, 0 to 1 per thread, 2 threads with none" in found.uneven()


@pytest.mark.parametrize(("size", "even"), [("0.5c", True), ("1c", True), ("2c", False)])
def test_an_nf_with_as_many_threads_as_queues_is_even(size: str, even: bool) -> None:
    assert of("CSC", 1, 1, size).even == even


def test_threads_that_are_siblings_are_counted_and_named() -> None:
    half = of("CSC", 2, 2, "0.5c")
    assert (half.sibling_nfs, half.sibling_data) == (2, 3), "two cores of two NFs each, and the vSwitch's own"
    assert half.siblings() == (
        "data threads of different NFs are siblings on 2 physical cores",
        "data threads of one owner are siblings on 1 physical core",
    )
    assert of("CSC", 2, 2, "1c").sibling_nfs == 0
    assert of("CSC", 2, 2, "1c", smt=False).siblings() == ()


def test_oversubscribed_threads_per_cpu() -> None:
    two = layout([(0, 0, 0, 0), (1, 1, 0, 0)])
    asked = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=2)
    found = balance(asked, make_plan(LOCAL, asked, two).cores)
    assert (found.least_threads, found.most_threads) == (5, 5)
    assert "5 data threads per logical CPU" in found.uneven()
    assert not found.even


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(1, 1, ()), (1, 2, ("1 to 2 data threads per logical CPU",)), (2, 2, ("2 data threads per logical CPU",))],
)
def test_two_data_threads_on_a_logical_cpu_are_uneven(least: int, most: int, said: tuple[str, ...]) -> None:
    found = Balance(Spread(4, 2), (("1c", Spread(2, 2)),), 0, 0, least, most)
    assert found.uneven() == said
    assert found.even is not bool(said)


def test_oversubscribed_cores_name_the_fewest_and_most_threads_and_no_siblings() -> None:
    three = layout([(cpu, cpu % 3, 0, 0) for cpu in range(6)])
    asked = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2)
    found = balance(asked, make_plan(LOCAL, asked, three).cores)
    assert (found.least_threads, found.most_threads) == (1, 2)
    assert (found.sibling_nfs, found.sibling_data, found.siblings()) == (0, 0, ())


@pytest.mark.parametrize(("kind", "inner"), [("CSC", 2 * 3 * 4), ("CSP", 2 * 3)])
def test_instances_on_one_cable_share_its_ports(kind: str, inner: int) -> None:
    asked = Cell(service_type=ServiceType(kind), nf_chains=3, nf_nodes=4)
    assert vswitch_ports(asked, one_cable=True) == inner + 2
    assert vswitch_ports(asked, one_cable=False) == inner + 2 * 3
    cores = make_plan(SIM, asked, MANY).cores
    assert balance(asked, cores, one_cable=True).vswitch.queues == inner + 2


def test_a_shared_nf_has_the_queues_of_all_instances() -> None:
    asked = Cell(service_type=ServiceType.CSP, nf_chains=3, nf_nodes=2, shared_nodes=(1,))
    found = balance(asked, make_plan(SIM, asked, MANY).cores)
    assert found.nfs == (("1c shared", Spread(6, 2)), ("1c", Spread(2, 2)))


@settings(deadline=None)  # a busy machine is no error
@given(
    kind=st.sampled_from(list(ServiceType)),
    chains=st.integers(1, 9),
    nodes=st.integers(1, 9),
    size=nf_sizes,
    vs_dtc=st.sampled_from([1, 2, 4]),
)
def test_it_says_what_the_wiring_does(kind: ServiceType, chains: int, nodes: int, size: NfSize, vs_dtc: int) -> None:
    asked = Cell(service_type=kind, nf_chains=chains, nf_nodes=nodes, nf_sizes=(size,), vs_dtc=vs_dtc)
    plan = make_plan(SIM, asked, MANY)
    found = balance(asked, plan.cores)
    ports = plan.ports("vswitch")
    assert vswitch_ports(asked) == len(ports)
    for owner, spread in (("vswitch", found.vswitch), ("nf-1-1", found.nfs[0][1])):
        queues = Counter(port.data_thread for port in plan.ports(owner))
        threads = len(plan.cores.cpus(owner))
        counts = [queues[thread] for thread in range(threads)]
        assert (spread.threads, spread.queues) == (threads, sum(counts))
        assert (spread.least, spread.most, spread.idle) == (min(counts), max(counts), counts.count(0))
