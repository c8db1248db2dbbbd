"""Sentences about sizings."""

from csit_utils.dataset.items import Characterized
from csit_utils.report.units import DASH
from resources.libraries.python.studies.sizing.model.spec import Sized, Sizing

_ENDS = {"failed": "a size could not be measured"}


def headline(item: Characterized) -> str:
    """Return the result in one sentence."""
    sizing = item.record.sizing
    if sizing is None:
        return f"nothing was measured: {item.message}"
    end = _ENDS.get(sizing.stopped, sizing.stopped)
    best = best_of(sizing)
    if best is None:
        return f"no size carries the lowest load; {end}"
    among = f", the highest of {len(sizing.sizes)} sizes measured" if len(sizing.sizes) > 1 else ""
    carries = f"{best.name} carries {capacity_words(best, sizing.workload.unit)} with {best.vcpus:g} vCPUs"
    return f"{carries}{among}; {end}"


def best_of(sizing: Sizing) -> Sized | None:
    """Return the size with the highest capacity; None if no size carries the lowest load."""
    best = sizing.named().get(sizing.best or "")
    return None if best is None or best.capacity is None else best


def capacity_words(size: Sized, unit: str) -> str:
    """`600 calls/s`, `at least 1000 replies/s`."""
    if size.capacity is None:
        return f"less than {size.offered[0].load:g} {unit}" if size.offered else DASH
    return f"{'at least ' if size.at_top else ''}{size.capacity:g} {unit}"
