"""Plans with SMT on and switched off: one thread of each core of the DUTs, the same cores, nothing else."""

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from tests.builders import SIM
from tests.unit.planning.labs import lab

CELL = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=2)


def planned(topology: Topology, smt: bool | None, cell: Cell = CELL) -> Plan:
    return make_plan(topology, cell, {}, smt=smt)


def test_with_smt_off_each_core_has_its_first_thread_only() -> None:
    on, off = planned(SIM, smt=True), planned(SIM, smt=False)
    assert (on.smt_off, off.smt_off) == (False, True)
    assert (on.cores.smt, off.cores.smt) == (True, False)
    assert [len(on.cores.cpus(name)) for name in ("nf-1-1", "nf-1-2")] == [2, 2]
    for owner in ("vswitch", "nf-1-1", "nf-1-2"):
        assert off.cores.cpus(owner) == tuple(cpu for cpu in on.cores.cpus(owner) if cpu < 28), "the same core"


def test_a_plan_that_leaves_smt_as_it_is_stays_the_same() -> None:
    usual = make_plan(SIM, CELL, {})
    assert digest_of_model(planned(SIM, smt=True)) == digest_of_model(usual)
    assert "smt_off" not in usual.model_dump_json()
    assert digest_of_model(planned(SIM, smt=False)) != digest_of_model(usual)


def test_half_a_core_needs_what_is_switched_off() -> None:
    with pytest.raises(PlanError, match=r"NF size 0\.5c needs SMT"):
        planned(SIM, smt=False, cell=CELL.model_copy(update={"nf_sizes": (NfSize.HALF,)}))


@pytest.mark.parametrize("duts", [1, 2])
def test_a_generator_of_another_machine_keeps_its_threads(duts: int) -> None:
    topology = lab(duts, smt=True, cores=32, tg_cores=16)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    on, off = planned(topology, smt=True, cell=cell), planned(topology, smt=False, cell=cell)
    machines = {machine.machine: machine.smt for machine in off.cores.elsewhere}
    assert machines == {"TG": True} | ({"DUT2": False} if duts > 1 else {})
    assert off.cores.cpus("generator") == on.cores.cpus("generator")


@pytest.mark.parametrize("smt", [True, False])
def test_a_machine_without_smt_is_refused_in_one_sentence(smt: bool) -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    with pytest.raises(PlanError) as refused:
        planned(lab(1, cores=32), smt=smt, cell=cell)
    assert str(refused.value) == (
        "DUT1 has one thread on each core, so SMT on and off cannot be compared: enable SMT in the firmware, or "
        "echo on > /sys/devices/system/cpu/smt/control"
    )
    with pytest.raises(PlanError, match=r"^DUT1 and DUT2 have one thread"):
        planned(lab(2, cores=32), smt=smt, cell=cell)
