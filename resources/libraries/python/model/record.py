"""The envelope of a record: all that tests of any study say of themselves.

Each study adds its payload by a class of its own, in `studies/<study>/model.py`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty, is_none
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.qualification import Qualification
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import DeploymentTimes, Environment, Rerun, Verdict
from resources.libraries.python.model.testbed.topology import World

SchemaVersion = Literal["5.0"]
SCHEMA_VERSION: SchemaVersion = "5.0"
"""Raised when a key changes its form or meaning, or goes away; a key that is added has a default."""


class Packed:
    """Mark of a field that only details need: it is compressed in `output.xml`."""


PACKED = Packed()


class Record(Frozen):
    """A test of any study. `simulated` is true for everything that did not come from real packets."""

    study: str
    """Name of the study, which decides the payload."""
    schema_version: SchemaVersion = SCHEMA_VERSION
    test_id: str
    """Robot's long name of the test."""
    test_name: str
    tags: tuple[str, ...]
    started_at: str
    finished_at: str
    """UTC, ISO 8601."""
    passed: bool
    skipped: bool = Field(default=False, exclude_if=is_empty)
    """Whether the testbed lacks what the test needs."""
    message: str
    """Reason why the test did not pass; empty otherwise."""
    world: World
    simulated: bool
    testbed: str
    environment: Annotated[Environment, PACKED]
    drivers: dict[str, str]
    """Driver by role."""
    noise: Annotated[tuple[CpuNoise, ...], PACKED] = Field(default=(), exclude_if=is_empty)
    """Noise floor of the data CPUs before the run; empty where it was not observed."""
    qualification: Annotated[Qualification | None, PACKED] = Field(default=None, exclude_if=is_none)
    """Qualification of the generator; None where it is not qualified."""
    simulation: dict[str, Any] | None = None
    """Parameters of the simulated system."""
    facts: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Facts about the parts while they ran, by role: versions, accelerator, how frames were sent."""
    plan: Annotated[Plan | None, PACKED] = None
    """None where planning failed, and of studies that deploy without one plan."""
    plan_digest: str | None = None
    """SHA-256 of the plan's canonical JSON."""
    deployment: DeploymentTimes | None = Field(default=None, exclude_if=is_none)
    """None where nothing was deployed, and of studies that deploy more than once."""
    warnings: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Warnings for readers: oversubscribed cores, flagged points."""
    verdict: Verdict | None = Field(default=None, exclude_if=is_none)
    broken: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Attempts of this test that broke the system under test, as the reason of each; the record is of the last one."""
    quarantined: str | None = Field(default=None, exclude_if=is_none)
    """Reason why no further test of this cell runs."""
    rerun: Rerun | None = Field(default=None, exclude_if=is_none)

    @property
    def kind(self) -> str:
        """Kind of test within the study, as tables and file names have it."""
        return self.study

    @property
    def file_prefix(self) -> str:
        """Beginning of the name of the record's file."""
        return self.kind

    def anchor(self, digest: str) -> str:
        """Return the id for links to the test, the same in every report of this record, which has a digest."""
        return f"{self.kind}-{digest[:12]}"

    @property
    def version(self) -> str:
        """Version of the vSwitch, or of the kernel if that is the vSwitch."""
        if self.simulated:
            return "simulated"
        version = next((facts["vswitch"] for facts in self.facts.values() if "vswitch" in facts), None)
        return version or f"Linux {self.environment.kernel.split(' ', 1)[0]}"

    def counted(self, digest: str) -> Mapping[str, Any]:
        """Figures of packed fields that the row of a table has, so that nothing has to be unpacked for it.

        `digest` is the SHA-256 of the record's whole JSON: equal for one record, wherever it was written.
        """
        return {"digest": digest}


@cache
def packed_keys(of: type[Record]) -> frozenset[str]:
    """Names of the fields that are compressed in `output.xml`."""
    return frozenset(name for name, field in of.model_fields.items() if PACKED in field.metadata)
