"""Robot variables that choose how services are swept: `robot -v SWEEP_RATES:10000-200000/10000 …`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_LOAD_S, LONGEST_NUMBER, quoted
from resources.libraries.python.model.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.kinds import are_vms
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.studies.density.model.selection import parse_kinds, parse_sizes
from resources.libraries.python.studies.shared.choices import Lookup, chosen_topology, rerun_of
from resources.libraries.python.studies.sweep.model.load_notation import parse_bursts, parse_rates
from resources.libraries.python.studies.sweep.profile_store import ProfileStore
from resources.libraries.python.studies.sweep.request import AskedSweep
from resources.libraries.python.testbed.deployment.generator_limits import protocol_of

DEFAULTS: Mapping[str, str] = {
    "SWEEP_RATES": "auto",
    "SWEEP_DURATION": "2",
    "STOP_LOSS": "",
    "FRAME": "64B",
    "FLOWS": "auto",
    "PROTOCOL": "auto",
    "GENERATOR": "",
    "PROFILES": "",
}
"""Used where a variable is not given."""
NO_NF = "none"
"""In the place of NF kinds: the path without any."""


def earlier_profiles(lookup: Lookup, topology: Topology) -> ProfileStore:
    """Profiles of this testbed, earlier ones below the folder `PROFILES`.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = _value(lookup, "PROFILES")
    return ProfileStore(topology.world, topology.metadata.name, Path(folder) if folder else None)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Arguments of a test; empty ones are taken from the variables."""

    name: str
    nf_kinds: str
    nf_sizes: str = "1c"
    branches: str = "1"
    shared_nodes: str = ""
    frame: str = ""
    flows: str = ""
    protocol: str = ""
    rates: str = ""
    duration: str = ""
    bursts: str = ""


def asked_sweep(lookup: Lookup, topology: Topology, row: SweepRow) -> AskedSweep:
    """Sweep of a test; arguments that it leaves empty are taken from the variables.

    Args:
        lookup: The variables.
        topology: The testbed.
        row: The test.

    Raises:
        ConfigError: A value is wrong.
    """
    cell = _cell(row)
    flows = row.flows or _value(lookup, "FLOWS")
    asked = AskedSweep(
        name=row.name,
        cell=cell,
        frame=frame(row.frame or _value(lookup, "FRAME")),
        flows=len(cell.instances) if flows == "auto" else _whole(flows, "flows", 1000),
        protocol=protocol_of(topology.tg.generator.driver, row.protocol or _value(lookup, "PROTOCOL")),
        duration_s=_whole(row.duration or _value(lookup, "SWEEP_DURATION"), "seconds of a load", LONGEST_LOAD_S),
        rates=None if row.bursts else parse_rates(row.rates or _value(lookup, "SWEEP_RATES")),
        bursts=parse_bursts(row.bursts) if row.bursts else None,
        stop_loss_ratio=_share(_value(lookup, "STOP_LOSS")),
    )
    asked.check()
    return asked


def rerun_of_sweep(lookup: Lookup) -> Rerun:
    """Return how to repeat the present test, for its record."""
    return rerun_of(lookup, chosen_topology(lookup), {name: _value(lookup, name) for name in DEFAULTS})


def _cell(row: SweepRow) -> Cell:
    """A service is a CSP: its NFs are linked to each other, and the vSwitch is at its edges only.

    Virtual machines are never linked to each other: a service of them is a VSC.
    """
    none = row.nf_kinds == NO_NF
    kinds = () if none else parse_kinds(row.nf_kinds)
    try:
        return Cell(
            service_type=ServiceType.VSC if are_vms(kinds) else ServiceType.CSP,
            **Dimensions(_whole(row.branches, "branches", 100), 0 if none else max(1, len(kinds))).columns,
            nf_sizes=parse_sizes(row.nf_sizes),
            nf_kinds=kinds,
            shared_nodes=tuple(
                _whole(node, "the number of a shared node", 100) for node in row.shared_nodes.split("+") if node
            ),
        )
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"service {row.name}: {message}") from error


def _whole(text: str, what: str, most: int) -> int:
    if not text.isdecimal() or len(text) > LONGEST_NUMBER or not 1 <= int(text) <= most:
        raise ConfigError(f"{what}: '{quoted(text)}' is not a whole number from 1 to {most}")
    return int(text)


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise ConfigError(f"STOP_LOSS: '{quoted(text)}' is not a loss ratio from 0 to 1, such as 0.2")
    return share


def _value(lookup: Lookup, name: str) -> str:
    return str(lookup(name) or DEFAULTS[name])
