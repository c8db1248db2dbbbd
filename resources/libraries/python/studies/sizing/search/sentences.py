"""Results of a deployment size as text."""

from resources.libraries.python.studies.sizing.model.spec import Sized, WatchedResource


def outcome(sized: Sized, unit: str) -> str:
    """Return the result of a size, without its name."""
    if sized.failed:
        return f"could not be measured: {sized.failed}"
    if sized.capacity is None:
        return "does not carry the lowest load"
    more = " or more" if sized.at_top else ""
    bottleneck = f", {sized.bottleneck} is busiest" if sized.bottleneck else ""
    return f"capacity {sized.capacity:g} {unit}{more}{bottleneck}"


def used(value: float, watch: WatchedResource) -> str:
    """Use of the watched resource by an instance."""
    return f"{value / 1e6:.1f} Mbit/s" if watch is WatchedResource.NETWORK else f"{100 * value:.0f} %"
