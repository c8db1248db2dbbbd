"""Cells and plans on the shipped testbeds, for any test."""

import subprocess
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.qualification import Qualification, QualificationKey, QualifiedPoint
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.planning.matrix import core_usage

TOPOLOGIES = Path(__file__).parents[1] / "topologies"


def shipped(name: str) -> Topology:
    """A testbed of `topologies/`."""
    return load_topology(TOPOLOGIES / f"{name}.yaml")


SIM = shipped("sim")
NOWHERE = Environment(
    hostname="", cpu_model="", microcode=None, cpus_online=1, memory_bytes=None, kernel="", command_line=None,
    distribution=None, virtualization=None, python="", versions={}, git_revision=None, git_dirty=None,
)  # fmt: skip
"""A machine of which nothing is known."""


class Altered:
    """A part of a testbed some of whose methods are others; typed as any of them."""

    def __init__(self, part: object, **methods: Any) -> None:
        vars(self).update(methods, _part=part)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_part"], name)


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that fails with this error."""

    def call(*_: object, **__: object) -> None:
        raise error

    return call


def shell_program(path: Path, text: str) -> Path:
    """A program of shell at a path."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def finished(trial: Trial, *counts: tuple[int, int], **changes: Any) -> TrialResult:
    """A trial that took as long as asked, with packets sent and received of instance 1, forward and then reverse."""
    result: dict[str, Any] = {
        "trial": trial, "started_at": "2026-01-01T00:00:00+00:00", "offered_duration_s": trial.duration_s,
        "total_duration_s": trial.duration_s,
        "flows": tuple(
            FlowCount(instance=1, direction=direction, sent=sent, received=received)
            for direction, (sent, received) in zip(Direction, counts, strict=False)
        ),
    }  # fmt: skip
    return TrialResult(**{**result, **changes})


def simulated_by(**simulation: Any) -> Topology:
    """The simulated testbed with other constants of its simulation."""
    return SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), **simulation}})


def flow_of(direction: Direction = Direction.FORWARD, ports: tuple[str, str] = ("a", "b"), **changes: Any) -> Flow:
    """A flow of instance 1 from one port to another, or back."""
    near, far = ports if direction is Direction.FORWARD else ports[::-1]
    addresses = {"source_ip": "10.0.0.1", "sources": 254, "destination_ip": "20.0.0.1"}
    macs = {"source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02"}
    ends = {"instance": 1, "direction": direction, "tx_interface": near, "rx_interface": far}
    return Flow.model_validate({**ends, **macs, **addresses, **changes})


def cpus(count: int) -> CpuLayout:
    """A layout of so many cores on one NUMA node, without SMT."""
    return layout((cpu, cpu, 0, 0) for cpu in range(count))


def cell_of(service_type: str = "CSC", nf_chains: int = 1, nf_nodes: int = 1, **parts: Any) -> Cell:
    """A cell of a type: CSC, CSP or VSC."""
    return Cell(service_type=ServiceType(service_type), nf_chains=nf_chains, nf_nodes=nf_nodes, **parts)


def plan_of(
    testbed: str | Topology,
    service_type: str,
    nf_chains: int = 1,
    nf_nodes: int = 1,
    cores: CpuLayout | None = None,
    **parts: Any,
) -> Plan:
    """The plan of a cell."""
    cell = cell_of(service_type, nf_chains, nf_nodes, **parts)
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


def qualified_point(size: str = "64B", flows: int = 2, **changed: Any) -> QualifiedPoint:
    """A generator that loses nothing up to 1 Mpps, and 0.5 % at 1.1 Mpps."""
    point: dict[str, Any] = {
        "loss_free_pps": 1e6, "highest_pps": 1.1e6, "offered_pps": 4e6, "received_pps": 1.2e6, "rate_error": 1e-5,
        "gap_load_pps": 1e5, "gap_p50_ns": 20e3, "gap_p99_ns": 21e3, "gap_p999_ns": 60e3, "floor_ns": 8e3,
        "floor_p50_ns": 9e3,
    }  # fmt: skip
    return QualifiedPoint(frame=frame(size), flows=flows, **{**point, **changed})


def qualification(*points: QualifiedPoint) -> Qualification:
    """Points of a generator."""
    key = QualificationKey(generator="auto", version="1", nic="veth", machine="m", kernel="k", cpus=1)
    return Qualification(
        key=key, measured_at="2026-11-25T12:00:00+00:00", sending="XDP live frames", trial_s=0.2, points=points
    )


def cores_of_nfs(cell: Cell) -> int:
    """Physical cores used by NFs alone, as the table of draft-mkonstan-nf-service-density-01 counts them.

    `ceil(1.5 S N)` for NF-1c: the vSwitch is left out, shared cores are rounded up.
    """
    return ceil(core_usage(cell) - 1 - cell.vs_dtc)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as somebody, and return what it prints."""
    argv = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
