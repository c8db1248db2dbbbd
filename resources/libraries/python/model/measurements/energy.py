"""Power of nodes and energy per packet: what meters said, and what follows from it."""

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from resources.libraries.python.model.base import Frozen, is_none
from resources.libraries.python.model.bounds import HIGHEST_READING, LATEST_S, MAX_SAMPLES

_Time = Annotated[float, Field(ge=-LATEST_S, le=LATEST_S)]
_Reading = Annotated[float, Field(ge=0, le=HIGHEST_READING)]
_Positive = Annotated[FiniteFloat, Field(gt=0)]
IDLE = "IDLE"
"""Label of the measurement before anything is deployed."""


class MeterSeries(Frozen):
    """Readings of one domain of a meter."""

    node: str
    meter: str
    """Kind of meter: `powercap`, `ipmi`, `redfish`, or `sim`."""
    domain: str
    """Part of the machine, as the meter calls it: `package-0`, `package-0/dram`, `system`."""
    counts: bool
    """Whether it is part of the node's total; others are parts of a domain that is, or have it as a part."""
    quantity: Literal["energy", "power"]
    samples: Annotated[tuple[tuple[_Time, _Reading], ...], Field(max_length=MAX_SAMPLES)]
    """Time in seconds since the epoch, by the controller's clock, and the reading in joules or watts."""
    resolution: Annotated[FiniteFloat, Field(ge=0)]
    """Smallest step of a reading, in joules or watts."""
    interval_s: _Positive
    """Time from one reading of the meter to its next; that of a power is the mean over it."""
    wraps_at_j: _Positive | None = None
    """Where an energy counter starts again from 0; None for one that does not."""


class NodePower(Frozen):
    """Mean power of one node."""

    node: str
    meter: str
    watts: float
    """Of the domains that add up to the node."""
    error_w: float
    """Uncertainty from the resolution and the update interval of the meter."""
    measured_s: _Positive
    domains: dict[str, float]
    """Watts of every domain."""


class EnergyAtLoad(Frozen):
    """Power at one load."""

    label: str
    """`IDLE` before the deployment, `PDR0` deployed and without traffic, `PDR10`, `PDR50`, `PDR90`."""
    load_pps: float
    """Intended load, aggregate; 0 without traffic."""
    received_pps: float
    """Rate at which packets came back, aggregate."""
    nodes: tuple[NodePower, ...] = ()
    """Nodes with a meter."""
    busy_cpus: float | None = Field(default=None, exclude_if=is_none)
    """Data CPUs of the system under test that were busy, mean number; None where it is not known."""
    p99_ns: int | None = Field(default=None, exclude_if=is_none)
    """Worst p99 one-way latency of the same trial, over instances and directions."""
    remark: str | None = Field(default=None, exclude_if=is_none)
    """Why the power is not known, or not that of this load alone."""


class Energy(Frozen):
    """Power of nodes at loads that are shares of PDR, and energy per packet."""

    trial_s: _Positive
    """Length of each trial."""
    duts: tuple[str, ...]
    """Nodes of the system under test, to which the energy per packet belongs."""
    loads: tuple[EnergyAtLoad, ...]
    """Light loads first."""
    unmetered: dict[str, str] = Field(default_factory=dict)
    """Why a node has no meter, by node."""

    def at(self, label: str) -> EnergyAtLoad | None:
        """Return what was measured at a load; None where it was not."""
        found: EnergyAtLoad | None = row_at(self, label)
        return found

    def watts(self, label: str) -> tuple[float, float] | None:
        """Return the power of the system under test at a load and its uncertainty, in watts; None if unknown."""
        return watts_at(self, label)

    def joules_per_packet(self, label: str, above: str | None = None) -> tuple[float, float] | None:
        """Return the energy of the system under test per packet that arrived, and its uncertainty, in joules.

        `above`: Label of a load without traffic, whose power is subtracted; None for all of the power.
        """
        return joules_per_packet_at(self, label, above)


def row_at(found: Any, label: str) -> Any:  # noqa: ANN401 - an `Energy`, or a part of its record with these fields
    """Return what was measured at a load; None where it was not."""
    return next((row for row in found.loads if row.label == label), None)


def watts_at(found: Any, label: str) -> tuple[float, float] | None:  # noqa: ANN401 - as above
    """Return power and uncertainty as `Energy.watts`; None unless all nodes of the system under test have a meter."""
    row = row_at(found, label)
    nodes = [] if row is None else [each for each in row.nodes if each.node in found.duts]
    if not nodes or len(nodes) < len(found.duts):
        return None
    return sum(each.watts for each in nodes), sum(each.error_w for each in nodes)


def joules_per_packet_at(found: Any, label: str, above: str | None = None) -> tuple[float, float] | None:  # noqa: ANN401
    """Return energy per packet and uncertainty as `Energy.joules_per_packet`."""
    row, power = row_at(found, label), watts_at(found, label)
    base = (0.0, 0.0) if above is None else watts_at(found, above)
    if row is None or power is None or base is None or row.received_pps <= 0:
        return None
    return (power[0] - base[0]) / row.received_pps, (power[1] + base[1]) / row.received_pps
