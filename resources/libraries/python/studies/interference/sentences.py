"""Sentences of a study of interference on the console."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.interference.planning.cost import InterferenceCost
from resources.libraries.python.studies.shared.progress import human_rate, human_time


def preview_in_words(spec: InterferenceSpec, cost: InterferenceCost, *, simulated: bool) -> str:
    """Measurements and time of a study."""
    names = ", ".join(contender.name for contender in spec.contenders)
    twice = ", with and without a guarantee" if spec.guarantee else ""
    rounds = f"{spec.repetitions} repetition{'s' * (spec.repetitions > 1)}{twice}"
    about = "" if simulated else f", about {human_time(cost.seconds)}"
    count = f"{cost.runs} {'simulated ' if simulated else ''}measurements"
    return f"{count} of {names}, alone and up to {spec.together} together, {rounds}{about}"


def loads_in_words(loads_pps: Sequence[float], spec: InterferenceSpec) -> Iterator[str]:
    """Stand-ins, and the offered load at each frame size."""
    for contender in spec.contenders:
        if contender.stand_in_for:
            yield f"{contender.name} ({contender.kind}) is a stand-in for {contender.stand_in_for}"
    points = zip(spec.points(), loads_pps, strict=True)
    loads = [
        human_rate(pps) if len(loads_pps) == 1 else f"{frame.name} {human_rate(pps)}" for (frame, _), pps in points
    ]
    yield f"{', '.join(loads)} offered to each, one way"
