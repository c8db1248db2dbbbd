"""Cells and plans on the shipped testbeds, for any test."""

from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.noise import CpuNoise
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.plan import make_plan

TOPOLOGIES = Path(__file__).parents[1] / "topologies"


def shipped(name: str) -> Topology:
    """A testbed of `topologies/`."""
    return load_topology(TOPOLOGIES / f"{name}.yaml")


SIM = shipped("sim")


def cpus(count: int) -> CpuLayout:
    """A layout of so many cores on one NUMA node, without SMT."""
    return layout((cpu, cpu, 0, 0) for cpu in range(count))


def plan_of(
    testbed: str | Topology,
    service_type: str,
    nf_chains: int = 1,
    nf_nodes: int = 1,
    cores: CpuLayout | None = None,
    **parts: Any,
) -> Plan:
    """The plan of a cell.

    Args:
        testbed: It, or the name of a shipped one.
        service_type: CSC, CSP or VSC.
        nf_chains: Service instances.
        nf_nodes: NFs in each.
        cores: Of the DUT; those of this machine by default.
        parts: Of the cell.
    """
    cell = Cell(service_type=ServiceType(service_type), nf_chains=nf_chains, nf_nodes=nf_nodes, **parts)
    return make_plan(shipped(testbed) if isinstance(testbed, str) else testbed, cell, cores or discover())


def cpu_noise(cpu: int, *gaps_ns: int, observed_s: float = 1.0, machine: str | None = None) -> CpuNoise:
    """A CPU that was taken for these times."""
    classes: dict[int, int] = {}
    for gap in gaps_ns:
        shift = gap.bit_length() - 4
        classes[gap >> shift << shift] = classes.get(gap >> shift << shift, 0) + 1
    return CpuNoise(
        cpu=cpu, machine=machine, observed_s=observed_s, real_time=True, threshold_ns=2000,
        longest_ns=max(gaps_ns, default=0), durations=tuple(sorted(classes.items())), preemptions=0, interrupts={},
        stolen_s=None, smis=None,
    )  # fmt: skip
