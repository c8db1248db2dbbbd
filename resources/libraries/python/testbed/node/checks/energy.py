"""The energy meter of a node."""

from collections.abc import Iterator

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings.check_finding import CheckFinding, ok, warning
from resources.libraries.python.model.testbed.energy import EnergyMeter, Powercap
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.testbed.roles.watching import Readings

_FIX = "see docs/how-to/measure-energy.md"


def check(place: str, meter: EnergyMeter, found: Readings) -> Iterator[CheckFinding]:
    """Findings about what a meter has read.

    Args:
        place: In the topology.
        meter: The one of the topology.
        found: Readings of a short time.
    """
    for why in found.unmetered.values():
        if meter == Powercap():  # the default, which virtual machines do not have
            yield ok(place, "energy", f"no energy meter: {why}")
        else:
            yield warning(place, "energy", f"no power by {meter.meter}: {why}", _FIX)
    try:
        powers = node_powers(found.series)
    except Unsupported:  # a BMC whose interval is longer than the check
        last = sum(series.samples[-1][1] for series in found.series if series.counts)
        yield ok(place, "energy", f"{last:.0f} W by {meter.meter}")
        return
    for power in powers:
        domains = ", ".join(f"{domain} {watts:.1f} W" for domain, watts in power.domains.items())
        yield ok(place, "energy", f"{power.watts:.1f} ± {power.error_w:.2g} W by {power.meter}: {domains}")
