"""Work and time of a study, known before it begins."""

from collections.abc import Mapping
from dataclasses import dataclass

from resources.libraries.python.model.bounds import refuse_endless


@dataclass(frozen=True, slots=True)
class StudyCost:
    """Cost of a whole study.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """

    name: str
    """Name of the study."""
    steps: int
    """Measured one after the other, each in the journal; what the progress counts."""
    runs: int
    """Measurements of all steps together."""
    unit: str
    """Unit of `runs`, in the plural."""
    seconds: float
    counted: Mapping[str, float]
    """Steps, runs and what else is counted, by the names that previews give them in JSON."""

    def __post_init__(self) -> None:
        refuse_endless(self.name, self.runs, self.unit, self.seconds)

    @property
    def step_s(self) -> float:
        """Seconds of one step on average."""
        return self.seconds / max(1, self.steps)

    def counts(self) -> dict[str, float]:
        """Counts and seconds by the names that previews give them in JSON."""
        return {**self.counted, "seconds": self.seconds}
