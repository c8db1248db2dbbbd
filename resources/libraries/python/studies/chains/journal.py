"""The journal of a study of chains: a line for each chain that was measured, on disk before the next is deployed.

A line is one deployment: a chain with the workloads of one number of sessions. So a chain that was cut short is
measured again as a whole, and all its runs are of one deployment.
"""

from collections.abc import Mapping

from pydantic import TypeAdapter

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.chains.model.record import ChainRun, StepCost
from resources.libraries.python.studies.chains.model.spec import Chain


class ChainMeasured(Frozen):
    """A chain that was measured under all workloads of one number of sessions, and removed."""

    at: str
    """UTC, ISO 8601."""
    chain: Chain
    sessions: int
    plan: str
    """Digest of the plan by which it was deployed."""
    runs: tuple[ChainRun, ...]
    """One for each workload."""
    facts: dict[str, dict[str, str]]
    """Facts of the parts of the deployment."""
    sources: dict[str, str]
    """Traced events, or the reason for none."""
    notes: tuple[str, ...] = ()
    """Features not sampled, moved threads and leftovers."""
    costs: tuple[StepCost, ...] = ()
    """Costs of deploying, watching and removing it."""


class ChainJournal(StepJournal[ChainMeasured]):
    """A journal of chains; a context manager."""

    FILE = "chains.jsonl"
    KIND = "study of chains"
    ROWS = TypeAdapter(ChainMeasured)

    @property
    def chains(self) -> Mapping[tuple[Chain, int], ChainMeasured]:
        """Measured before, by chain and number of sessions; of one that is there twice the last one."""
        return {(row.chain, row.sessions): row for row in self.rows}
