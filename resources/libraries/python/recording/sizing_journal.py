"""The journal of a sizing: a line of JSON per size, on disk before the next size is deployed.

A search that was stopped goes on where it was: what the journal has is not measured again.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from resources.libraries.python.model.sizing import DeploymentSpec, Sized
from resources.libraries.python.model.workload import WorkloadSpec
from resources.libraries.python.recording.headed_journal import HeadedJournal

_SIZED = TypeAdapter(Sized)


def digest(spec: DeploymentSpec, workload: WorkloadSpec, system: str) -> str:
    """Tells sizings apart.

    Args:
        spec: The service.
        workload: What is offered to it.
        system: Where it is deployed, such as the testbed's world and name: a simulated size is no measured one.
    """
    parts = (spec.model_dump_json(), workload.model_dump_json(), system)
    return sha256(json.dumps(parts).encode()).hexdigest()


class SizingJournal(HeadedJournal[Sized]):
    """A journal of sizes; a context manager.

    Args:
        path: The file; made when it is missing.
        digest: Of what is to be measured.
    """

    def __init__(self, path: Path, digest: str) -> None:
        super().__init__(path, "sizing", digest, _SIZED)

    @property
    def sizes(self) -> Mapping[str, Sized]:
        """Measured before, by name; of a size that is there twice the last one."""
        return {sized.name: sized for sized in self.rows}
