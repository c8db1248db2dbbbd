"""The journal of a sizing: a line of JSON per size, on disk before the next size is deployed.

A search that was stopped goes on where it was: what the journal has is not measured again.
"""

from collections.abc import Mapping

from pydantic import TypeAdapter

from resources.libraries.python.recording.headed_journal import HeadedJournal, digest_of
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Sized
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec


def digest(spec: DeploymentSpec, workload: WorkloadSpec, system: str) -> str:
    """Tells sizings apart.

    Args:
        spec: The service.
        workload: What is offered to it.
        system: Where it is deployed, such as the testbed's world and name: a simulated size is no measured one.
    """
    return digest_of(spec.model_dump_json(), workload.model_dump_json(), system)


class SizingJournal(HeadedJournal[Sized]):
    """A journal of sizes; a context manager."""

    FILE = "sizing.jsonl"
    KIND = "sizing"
    ROWS = TypeAdapter(Sized)

    @property
    def sizes(self) -> Mapping[str, Sized]:
        """Measured before, by name; of a size that is there twice the last one."""
        return {sized.name: sized for sized in self.rows}
