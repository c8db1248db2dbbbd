"""A chain becomes the cell that it is: inline VNFs are nodes, passive ones get copies between them."""

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits, UserProgram
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning.plan import make_plan, no_such_kind
from resources.libraries.python.studies.chains.model.spec import (
    Chain,
    ChainStudySpec,
    Fault,
    Member,
    Mode,
    VnfSpec,
    Workload,
)
from resources.libraries.python.studies.chains.planning.chain_cell import cell_of, owners, planted
from tests.builders import shipped

VNFS = (
    VnfSpec(name="router", kind=NfKind("linux_router")),
    VnfSpec(name="nat", kind=NfKind("linux_nat")),
    VnfSpec(name="dump", kind=NfKind("tcpdump"), mode=Mode.PASSIVE),
)


def spec(*faults: Fault, vnfs: tuple[VnfSpec, ...] = VNFS) -> ChainStudySpec:
    workload = Workload(volume_bps=1e6, frame=frame("64B"))
    return ChainStudySpec(name="s", vnfs=vnfs, workloads=(workload,), faults=faults)


def chain(*names: str, memory_mib: int | None = None) -> Chain:
    return Chain(members=tuple(Member(name=name, size=NfSize.ONE, memory_mib=memory_mib) for name in names))


@pytest.mark.parametrize(
    ("order", "kinds", "position"),
    [
        ("router dump nat", ("linux_router", "linux_nat"), 2),
        ("dump nat", ("linux_nat",), 1),
        ("nat dump", ("linux_nat",), 2),
        ("dump", (), 1),
    ],
    ids=["between nodes", "before the first", "behind the last", "the path alone"],
)
def test_inline_ones_are_nodes_and_passive_ones_get_copies(order: str, kinds: tuple[str, ...], position: int) -> None:
    cell = cell_of(chain(*order.split()), spec())
    assert (cell.nf_nodes, cell.nf_kinds) == (len(kinds), tuple(map(NfKind, kinds)))
    assert [(tap.kind, tap.position) for tap in cell.taps] == [(NfKind("tcpdump"), position)]
    assert cell.limits == ()


FAULT = Fault(chain=("nat", "router"), vnf="nat", limits=Limits(cpu=0.1))


def test_a_fault_is_planted_in_its_chain_only() -> None:
    cell = cell_of(chain("nat", "router"), spec(FAULT))
    assert cell.limits == (Limits(cpu=0.1), Limits())
    assert planted(chain("nat", "router"), spec(FAULT)) == "nat is limited to 0.1 CPUs"
    assert cell_of(chain("router", "nat"), spec(FAULT)).limits == ()
    assert planted(chain("router", "nat"), spec(FAULT)) is None
    passive = Fault(chain=("dump", "nat"), vnf="dump", limits=Limits(cpu=0.1))
    assert cell_of(chain("dump", "nat"), spec(passive)).taps[0].limits == Limits(cpu=0.1)


def test_memory_of_a_range_is_a_limit_and_kept_to_beside_that_of_a_fault() -> None:
    assert cell_of(chain("router", "nat", memory_mib=64), spec()).limits == (Limits(memory_mib=64),) * 2
    fault = FAULT.model_copy(update={"limits": Limits(cpu=0.1, memory_mib=128)})
    assert cell_of(chain("nat", "router", memory_mib=64), spec(fault)).limits[0] == Limits(cpu=0.1, memory_mib=64)


def test_names_of_the_plan_lead_to_vnfs() -> None:
    assert owners(chain("nat", "dump", "router"), spec()) == {"nf-1-1": "nat", "tap-1-1": "dump", "nf-1-2": "router"}
    watched = spec(vnfs=(*VNFS, VnfSpec(name="grep", kind=NfKind("ngrep"), mode=Mode.PASSIVE)))
    assert owners(chain("dump", "nat", "grep"), watched) == {"tap-1-1": "dump", "nf-1-1": "nat", "tap-1-2": "grep"}


def test_a_program_goes_to_its_node() -> None:
    program = UserProgram(start=("sleep", "9"))
    vnfs = (VNFS[0], VnfSpec(name="own", kind=NfKind("process"), program=program))
    assert cell_of(chain("router", "own"), spec(vnfs=vnfs)).programs == (None, program)


def test_what_forwards_packets_cannot_be_passive() -> None:
    vnfs = (VnfSpec(name="nat", kind=NfKind("linux_nat"), mode=Mode.PASSIVE),)
    with pytest.raises(PlanError, match=r"nat: an NF of kind linux_nat cannot be passive"):
        cell_of(chain("nat"), spec(vnfs=vnfs))


MACHINES = spec(vnfs=(VnfSpec(name="vm", kind=NfKind("qemu")), *VNFS))


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4"),
        ("dump vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4-tap1tcpdump"),
        ("nat", "eth-l2bd-1ch-2veth-1dcr1t-lnxnat"),
        ("vm nat", "eth-l2bd-1ch-4veth-1dcr1t+1vm-lnxip4+lnxnat"),
    ],
)
def test_virtual_machines_are_chained_with_each_other_and_with_containers(order: str, name: str) -> None:
    cell = cell_of(chain(*order.split()), MACHINES)
    plan = make_plan(shipped("local"), cell, shipped("available/lab-2n-kernel").dut.layout)
    assert plan.suite_id == name
    assert [function.kind for function in plan.functions] == list(cell.nf_kinds)


def test_a_service_of_virtual_machines_only_is_no_chain_of_containers() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_kinds=(NfKind("qemu"),))
    assert "no NFs of kind qemu for a CSC" in str(no_such_kind(shipped("local"), cell))
