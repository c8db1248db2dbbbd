"""What a sweep shows on the console while it goes on."""

from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.studies.shared.console import Console, human_rate, human_time
from resources.libraries.python.studies.sweep.analysis.sentences import break_point_in_words, errors_in_words
from resources.libraries.python.studies.sweep.load_steps import Done


class SweepProgress:
    """Load k of n, what it gave, time left."""

    def __init__(self) -> None:
        self._console = Console()
        self._name = ""
        self._simulated = False

    def test(self, name: str, *, simulated: bool) -> None:
        """A test begins; in a simulated world the time that a sweep tells of is not a person's."""
        self._name, self._simulated = name, simulated
        self._console.line("")  # Robot's own line of the test may still be open
        self._console.status(f"{name}: deploying")

    def begins(self, text: str) -> None:
        """The loads begin."""
        self._console.line(f"{self._name}: {text}")

    def load(self, done: Done) -> None:
        """A load has ended."""
        words = [f"load {done.number} of {done.loads}"]
        if done.point is not None:
            loss = done.point.loss_ratio
            words.append(f"{human_rate(done.point.rate_pps)} {'' if loss is None else f'loss {100 * loss:.2f} %'}")
        left = "" if self._simulated else f"; about {human_time(done.remaining_s)} left"
        self._console.status(f"{self._name}: {', '.join(words)}{left}")

    def done(self, record: Characterization) -> None:
        """A test has ended."""
        note = " (simulated)" if record.simulated else ""
        loads = 0 if record.sweep is None else len(record.sweep.points) or len(record.sweep.samples)
        kind = "samples" if record.sweep is not None and not record.sweep.points else "loads"
        if not record.passed:
            self._console.line(f"{self._name}: {record.message}")
            return
        self._console.line(f"{self._name}: {loads} {kind}{note}")
        if record.profile is not None:
            self._console.line(break_point_in_words(record.profile))
        for line in errors_in_words([each.model_copy(update={"notes": ()}) for each in record.predictions]):
            self._console.line(line)
