"""A sweep as people ask for it, with its loads (`10000-200000/10000`, `auto`, `on 2 off 1 at 500`) and its cost."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, error_text, first_error
from resources.libraries.python.model.bounds import (
    ASKED,
    LONGEST_LOAD_S,
    LONGEST_NUMBER,
    LONGEST_QUOTE,
    MAX_SWEEP_LOADS,
    quoted,
)
from resources.libraries.python.model.request.cell import Cell, Dimensions, Frame, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import are_vms
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.model.request.variables import (
    DEPARTURES,
    FLOWS,
    FRAME,
    PROTOCOL,
    STOP_LOSS,
    SWEEP_DURATION,
    SWEEP_RATES,
    SWEEP_WIDTH,
    Lookup,
)
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.planning.traffic import departures_of, protocol_of
from resources.libraries.python.studies.density.planning.selection import parse_kinds, parse_sizes
from resources.libraries.python.studies.sweep.model import Bursts, Rates

DEFAULT_WIDTH = 0.02
AUTOMATIC_LOADS = 12
"""Loads of a sweep whose user named none."""
_EACH_SECOND_S = 0.14
"""Overhead of a second of load: preparing, settling and reading counters. Measured on local.yaml."""
NO_NF = "none"
"""In the place of NF kinds: the path without any."""
_Kind = TypeVar("_Kind", Rates, Bursts)
_NUMBER = r"(\d+(?:\.\d+)?)"
_RATES = re.compile(rf"{_NUMBER}(?:-{_NUMBER}/{_NUMBER})?")
_BURSTS = re.compile(rf"on (\d+) off (\d+) at {_NUMBER}(x?)")


class RelativeBursts(Frozen):
    """Bursts whose rate is a multiple of what the service can forward."""

    on_s: int
    off_s: int
    times: float

    def at(self, capacity_pps: float) -> Bursts:
        """The bursts, once that is known; packets per second of each flow, one way."""
        return Bursts(rate_pps=self.times * capacity_pps, on_s=self.on_s, off_s=self.off_s)


def parse_rates(text: str) -> Rates | None:
    """Rates of each flow in packets per second: `auto` (None), one load, or `first-last/step`.

    Raises:
        ConfigError: They make no sense.
    """
    words = text.strip()
    if words == "auto":
        return None
    found = _RATES.fullmatch(words) if len(words) <= LONGEST_QUOTE else None
    shown = quoted(text)
    if found is None:
        raise ConfigError(f"rates '{shown}' are neither 'auto' nor like 10000-200000/10000 (first-last/step, pps)")
    first = float(found[1])
    last, step = (first, first) if found[2] is None else (float(found[2]), float(found[3]))
    rates = _made(Rates, f"rates '{shown}'", start_pps=first, stop_pps=last, step_pps=step)
    # Before they are listed: a step of 0.001 pps would fill the memory.
    if (count := (last - first) / step + 1) > MAX_SWEEP_LOADS:
        raise ConfigError(f"rates '{shown}': {count:.9g} loads; at most {MAX_SWEEP_LOADS}")
    return rates


def parse_bursts(text: str) -> Bursts | RelativeBursts:
    """Bursts: `on 2 off 1 at 50000` (seconds, pps of each flow), or `at 1.2x` for a multiple of what can be forwarded.

    Raises:
        ConfigError: They make no sense.
    """
    words = " ".join(text.split())
    found = _BURSTS.fullmatch(words) if len(words) <= LONGEST_QUOTE else None
    shown = quoted(text)
    if found is None:
        raise ConfigError(f"bursts '{shown}' are not like 'on 2 off 1 at 50000' or 'on 2 off 1 at 1.2x'")
    on_s, off_s, number = int(found[1]), int(found[2]), float(found[3])
    bursts = _made(Bursts, f"bursts '{shown}'", rate_pps=number, on_s=on_s, off_s=off_s)
    return RelativeBursts(on_s=on_s, off_s=off_s, times=number) if found[4] else bursts


def _made(kind: type[_Kind], what: str, **values: float) -> _Kind:
    try:
        return kind.model_validate(values, context=ASKED)
    except ValidationError as error:
        raise ConfigError(f"{what}: {error_text(error)}") from error


class SweepRequest(Frozen):
    """What a sweep is to measure."""

    name: str
    """Name of the service."""
    cell: Cell
    frame: Frame
    flows: int
    protocol: Protocol
    duration_s: int
    """Duration of each load; of all bursts together."""
    rates: Rates | None = None
    """None without bursts: twelve steps up to 1.6 times what the service can forward."""
    bursts: Bursts | RelativeBursts | None = None
    stop_loss_ratio: float | None = None
    """See `load_steps.sweep`."""
    departures: Departures = Departures.CONSTANT
    width: float | None = DEFAULT_WIDTH
    """Relative width of the break-point's interval down to which further loads are measured; None measures none."""
    smt: bool | None = None
    """Whether SMT is on, or switched off for the sweep; None for as it is. The plan says which, also for the digest."""
    once: bool = False
    """Whether it is left out where the same was measured in this run."""
    parts: tuple[str, ...] = ()
    """Services that the chain consists of, from whose profiles it is predicted; empty for no prediction."""
    compare_smt: bool = False
    """Whether it is compared with the same sweep with SMT."""

    def check(self) -> None:
        """Check that branches can share flows equally.

        Raises:
            ConfigError: They cannot.
        """
        branches = len(self.cell.instances)
        if self.flows < 1 or self.flows % branches:
            raise ConfigError(f"{self.flows} flows for {branches} branches: each branch needs the same number of them")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Keys of a test; empty ones are taken from the variables."""

    nf_kinds: str = NO_NF
    nf_sizes: str = "1c"
    branches: str = "1"
    shared_nodes: str = ""
    frame: str = ""
    flows: str = ""
    protocol: str = ""
    rates: str = ""
    duration: str = ""
    bursts: str = ""
    smt: str = ""
    once: str = ""
    parts: str = ""
    compare_smt: str = ""


def asked_sweep(lookup: Lookup, topology: Topology, name: str, keys: Mapping[str, str]) -> SweepRequest:
    """Sweep of a test; keys that it leaves out are taken from the variables.

    Raises:
        ConfigError: A key or a value is wrong.
    """
    known = [each.name for each in fields(SweepRow)]
    if unknown := [key for key in keys if key not in known]:
        raise ConfigError(f"sweep {quoted(name)}: unknown key '{quoted(unknown[0])}'; there are {', '.join(known)}")
    row = SweepRow(**keys)
    cell = _cell(name, row)
    flows = row.flows or FLOWS.text(lookup) or "auto"
    asked = SweepRequest(
        name=name,
        cell=cell,
        frame=frame(row.frame or FRAME.text(lookup)),
        flows=len(cell.instances) if flows == "auto" else _whole(flows, "flows", 1000),
        protocol=protocol_of(topology.tg.generator.driver, row.protocol or PROTOCOL.text(lookup)),
        departures=departures_of(topology.tg.generator.driver, DEPARTURES.text(lookup)),
        duration_s=_duration_s(row.duration or SWEEP_DURATION.text(lookup)),
        rates=None if row.bursts else parse_rates(row.rates or SWEEP_RATES.text(lookup)),
        bursts=parse_bursts(row.bursts) if row.bursts else None,
        stop_loss_ratio=STOP_LOSS.of(lookup),
        width=SWEEP_WIDTH.of(lookup),
        smt=_switch("smt", row.smt),
        once=_switch("once", row.once) or False,
        parts=tuple(part for part in row.parts.split("+") if part),
        compare_smt=_switch("compare_smt", row.compare_smt) or False,
    )
    asked.check()
    return asked


def expected_cost(name: str, duration_s: int, rates: Rates | None, *, bursts: bool) -> StudyCost:
    """Return the cost of a sweep before rates that depend on the service are found.

    `duration_s`: of each load, or of all bursts.
    """
    count = 1 if bursts else AUTOMATIC_LOADS if rates is None else len(rates.each())
    return cost(name, count * duration_s, count)


def cost(name: str, seconds: float, count: int) -> StudyCost:
    """Return the cost of a number of loads, which take so many seconds together."""
    return StudyCost(name, count, count, "loads", seconds * (1 + _EACH_SECOND_S), {"loads": count})


def preview(name: str, keys: Mapping[str, str]) -> StudyCost:
    """Return the cost of a test with these keys; those that it leaves out have the defaults of the variables.

    Raises:
        ConfigError: A value is wrong.
    """
    duration_s = _duration_s(keys.get("duration") or SWEEP_DURATION.default)
    rates = parse_rates(keys.get("rates") or SWEEP_RATES.default)
    return expected_cost(name, duration_s, rates, bursts="bursts" in keys)


def _duration_s(text: str) -> int:
    return _whole(text, "seconds of a load", LONGEST_LOAD_S)


def _cell(name: str, row: SweepRow) -> Cell:
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
        raise ConfigError(f"service {name}: {first_error(error)[1]}") from error


def _whole(text: str, what: str, most: int) -> int:
    if not text.isdecimal() or len(text) > LONGEST_NUMBER or not 1 <= int(text) <= most:
        raise ConfigError(f"{what}: '{quoted(text)}' is not a whole number from 1 to {most}")
    return int(text)


def _switch(key: str, text: str) -> bool | None:
    if text not in ("", "on", "off"):
        raise ConfigError(f"{key}: '{quoted(text)}' is neither 'on' nor 'off'")
    return None if not text else text == "on"
