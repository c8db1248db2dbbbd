"""What a study of interference shows on the console while it goes on."""

from collections.abc import Sequence

from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.interference.planning.cost import Cost
from resources.libraries.python.studies.interference.run import Done
from resources.libraries.python.studies.shared.console import Console, human_rate, human_time


class InterferenceProgress:
    """Measurement k of n, what it gave, time left."""

    def __init__(self) -> None:
        self._console = Console()
        self._name = ""

    def begins(self, spec: InterferenceSpec, cost: Cost, *, simulated: bool) -> None:
        """A study begins."""
        self._name = spec.name
        self._console.line("")  # Robot's own line of the test may still be open
        names = ", ".join(contender.name for contender in spec.contenders)
        twice = ", with and without a guarantee" if spec.guarantee else ""
        rounds = f"{spec.repetitions} repetition{'s' * (spec.repetitions > 1)}{twice}"
        about = "" if simulated else f", about {human_time(cost.seconds)}"
        count = f"{cost.measurements} {'simulated ' if simulated else ''}measurements"
        self._console.line(
            f"{self._name}: {count} of {names}, alone and up to {spec.together} together, {rounds}{about}"
        )

    def says(self, sentence: str) -> None:
        """Something is to be known of the study."""
        self._console.line(f"{self._name}: {sentence}")

    def loads(self, loads_pps: Sequence[float], spec: InterferenceSpec) -> None:
        """All have been tried alone: the load is known, and who stands in for whom."""
        for contender in spec.contenders:
            if contender.stand_in_for:
                what = f"{contender.name} ({contender.kind}) is a stand-in for {contender.stand_in_for}"
                self._console.line(f"{self._name}: {what}")
        points = zip(spec.points(), loads_pps, strict=True)
        said = [
            human_rate(pps) if len(loads_pps) == 1 else f"{frame.name} {human_rate(pps)}" for (frame, _), pps in points
        ]
        self._console.line(f"{self._name}: {', '.join(said)} offered to each, one way")

    def turn(self, done: Done) -> None:
        """A measurement was made."""
        beside = f" beside {', '.join(done.turn.against)}" if done.turn.against else " alone"
        gave = human_rate(done.meeting.throughput_pps) if done.meeting else f"failed: {done.failed}"
        self._console.status(
            f"{self._name}: {done.number} of {done.of}, {done.turn.target}{beside}: {gave}; "
            f"about {human_time(done.remaining_s)} left"
        )

    def done(self, record: Characterization) -> None:
        """A test has ended."""
        if record.interference is None or not record.passed:
            self._console.line(f"{self._name}: {record.message}")
            return
        note = " (simulated)" if record.simulated else ""
        self._console.line(f"{self._name}: {len(record.interference.meetings)} measurements{note}")
        for line in (*matrix_in_words(record.interference), *advice_in_words(record.interference)):
            self._console.line(line)
