"""The journal of a sizing: a line of JSON per size, on disk before the next size is deployed.

A search that was stopped goes on where it was: what the journal has is not measured again. It holds for the same
specifications and the same system only; a search with others begins the file anew, below a new heading.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.sizing import DeploymentSpec, Sized
from resources.libraries.python.model.workload import WorkloadSpec
from resources.libraries.python.recording.lines import Lines


class Heading(Frozen):
    """What the lines below are about."""

    journal: Literal["sizing"] = "sizing"
    schema_version: Literal["1.0"] = "1.0"
    digest: str


def digest(spec: DeploymentSpec, workload: WorkloadSpec, system: str) -> str:
    """Tells sizings apart.

    Args:
        spec: The service.
        workload: What is offered to it.
        system: Where it is deployed, such as the testbed's world and name: a simulated size is no measured one.
    """
    parts = (spec.model_dump_json(), workload.model_dump_json(), system)
    return sha256(json.dumps(parts).encode()).hexdigest()


class SizingJournal:
    """A journal that is being written. One process at a time has it open; a context manager.

    Args:
        path: The file; made when it is missing.
        digest: Of what is to be measured.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self._digest = digest
        self._file = Lines(path)
        self.sizes: Mapping[str, Sized] = {}
        """Measured before, by name; of a size that is there twice the last one."""
        self.remarks: tuple[str, ...] = ()
        """What somebody who resumes should know."""

    def __enter__(self) -> Self:
        """Open it and read what is there.

        Raises:
            ConfigError: It is no journal of a sizing that this version reads.
            CsitError: Another process writes it, or it cannot be written.
        """
        self._file.open()
        try:
            same, self.sizes, self.remarks = self._read()
            if not same:
                self._file.append(Heading(digest=self._digest).model_dump_json())
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; the lock goes with it."""
        self._file.close()

    def keep(self, sized: Sized) -> None:
        """Write a size; it is on disk when this returns.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._file.append(sized.model_dump_json())

    def _read(self) -> tuple[bool, Mapping[str, Sized], tuple[str, ...]]:
        """Whether the last heading is ours, the sizes below it, and what is wrong with the file."""
        same = False
        sizes: dict[str, Sized] = {}
        remarks: list[str] = []
        for number, raw in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                data = json.loads(raw)
            except ValueError:  # a part of a JSON object is no JSON, and a part of a letter no text
                remarks.append(f"{self.path}: line {number} is torn, its writing was cut short; that size is lost")
                continue
            try:
                if isinstance(data, dict) and "journal" in data:
                    same, sizes = Heading.model_validate(data).digest == self._digest, {}
                elif same:
                    sized = Sized.model_validate_json(raw)
                    sizes[sized.name] = sized
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise ConfigError(
                    f"{self.path}: line {number} is not of a sizing that this version reads: {where}: {first['msg']}"
                ) from error
        return same, sizes, tuple(remarks)
