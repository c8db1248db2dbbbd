"""The record of a characterization test. The density matrix has a record of its own: `result`."""

from typing import Any, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment, Rerun
from resources.libraries.python.model.topology import World
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.interference.model.record import Interference
from resources.libraries.python.studies.sizing.model.spec import Sizing
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile
from resources.libraries.python.studies.sweep.model.record import Sweep

Kind = Literal["sweep", "bursts", "chain", "sizing", "chain_study", "interference"]
"""`sweep` has a profile, `chain` also predictions; one of `Characterization`'s parts says more."""


class Characterization(Frozen):
    """One test. `simulated` is true for everything that did not come from real packets."""

    record: Literal["characterization"] = "characterization"
    """Tells it from the record of a density test, which has no such key."""
    schema_version: Literal["1.0", "2.0"] = "2.0"
    """2.0: statistics of a study of chains are grouped by run. Records of 1.0 are read, too."""
    kind: Kind
    test_id: str
    """Robot's long name of the test."""
    test_name: str
    tags: tuple[str, ...]
    started_at: str
    finished_at: str
    """UTC, ISO 8601."""
    passed: bool
    message: str
    """Why the test did not pass; empty otherwise."""
    world: World
    simulated: bool
    testbed: str
    environment: Environment
    drivers: dict[str, str]
    """Role to driver name."""
    simulation: dict[str, Any] | None = None
    """Parameters of the simulated system."""
    facts: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What was found out about the parts while they ran, by role."""
    plan: Plan | None = None
    """Of a service that was deployed by a plan."""
    warnings: tuple[str, ...] = ()
    """What a reader must know: oversubscribed, flagged points."""
    sweep: Sweep | None = None
    profile: Profile | None = None
    predictions: tuple[Prediction, ...] = ()
    sizing: Sizing | None = None
    chain_study: ChainStudy | None = None
    interference: Interference | None = None
    rerun: Rerun | None = None
