"""Names and capacities of deployment sizes."""

from collections.abc import Mapping

from csit_utils.report.units import DASH
from resources.libraries.python.model.service.spec import MeasuredSize, Sizing
from resources.libraries.python.quantities import grouped
from resources.libraries.python.studies.sizing.search.size_search import carried


def size_words(sizing: Sizing) -> Mapping[str, str]:
    """Return components with instances and vCPUs of each, by name of the size: `bono 1 x 2, sprout 1 x 4 vCPUs`.

    Where sizes differ in memory only, their flavors stand in place of vCPUs.
    """
    flavors = sizing.deployment.flavors

    def words(size: MeasuredSize, *, by_flavor: bool) -> str:
        parts = (
            f"{name} {share.instances} x {share.flavor if by_flavor else f'{flavors[share.flavor].vcpus:g}'}"
            for name, share in size.size.components.items()
        )
        return ", ".join(parts) + " vCPUs" * (not by_flavor)

    every = {size.name: words(size, by_flavor=False) for size in sizing.sizes}
    if len(set(every.values())) < len(every):
        every = {size.name: words(size, by_flavor=True) for size in sizing.sizes}
    return every


def capacity_words(size: MeasuredSize, unit: str) -> str:
    """`600 calls/s (estimate 612, 95 % interval 605 to 619)`, `at least 1000 replies/s`."""
    if size.capacity is None:
        return f"less than {grouped(size.offered[0].load)} {unit}" if size.offered else DASH
    return f"{'at least ' if size.at_top else ''}{carried(size, unit)}"
