"""Sentences of a sizing on the console."""

from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.sizing.planning.cost import SizingCost


def cost_in_words(cost: SizingCost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if cost.sizes_at_most else ""), ("at most " if cost.loads_at_most else "")
    repeated = f", each {cost.repetitions} times" if cost.repetitions > 1 else ""
    time_text = f"{'at most' if cost.at_most else 'about'} {human_time(cost.seconds)}"
    return f"{most}{sizes_in_words(cost.sizes)}, {loads}{cost.loads} loads on each{repeated}: {time_text}"


def sizes_in_words(count: int) -> str:
    """Number of sizes."""
    return f"{count} size{'s' if count != 1 else ''}"
