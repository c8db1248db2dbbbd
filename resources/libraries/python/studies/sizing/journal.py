"""The journal of a sizing: a line of JSON per size, on disk before the next size is deployed.

A search that was cut short continues: sizes in the journal are not measured again.
"""

from collections.abc import Mapping

from pydantic import TypeAdapter

from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Sized
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec


def digest(spec: DeploymentSpec, workload: WorkloadSpec, system: str) -> str:
    """Digest of a sizing.

    Args:
        spec: The service.
        workload: What is offered to it.
        system: Where it is deployed, such as world and name of the testbed.
    """
    return digest_of(spec.model_dump_json(), workload.model_dump_json(), system)


class SizingJournal(StepJournal[Sized]):
    """A journal of sizes; a context manager."""

    FILE = "sizing.jsonl"
    KIND = "sizing"
    ROWS = TypeAdapter(Sized)

    @property
    def sizes(self) -> Mapping[str, Sized]:
        """Measured before, by name; of a size that is there twice the last one."""
        return {sized.name: sized for sized in self.rows}
