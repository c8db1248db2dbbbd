"""Use of CPUs."""

from typing import Protocol

from resources.libraries.python.model.counters import Sample


class Sampler(Protocol):
    """Reads how CPUs and data threads spend their time."""

    def read(self) -> Sample:
        """Times since boot. What cannot be read is left out. Cheap: one read before and one after a trial."""
