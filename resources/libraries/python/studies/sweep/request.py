"""Request of a sweep."""

from dataclasses import dataclass
from hashlib import sha256

from pydantic import TypeAdapter

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.cell import Cell, Frame
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.trial import Protocol
from resources.libraries.python.planning.plan import digest
from resources.libraries.python.studies.sweep.model.load_notation import RelativeBursts
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates


@dataclass(frozen=True, slots=True)
class AskedSweep:
    """The choice of the experiment."""

    name: str
    """Name of the service."""
    cell: Cell
    frame: Frame
    flows: int
    protocol: Protocol
    duration_s: int
    """Duration of each load; of all bursts together."""
    rates: Rates | None = None
    """None without bursts: twelve steps up to 1.6 times what the service can forward."""
    bursts: Bursts | RelativeBursts | None = None
    stop_loss_ratio: float | None = None
    """See `search.sweep`."""

    def check(self) -> None:
        """Check that branches can share flows equally.

        Raises:
            ConfigError: They cannot.
        """
        branches = len(self.cell.instances)
        if self.flows < 1 or self.flows % branches:
            raise ConfigError(f"{self.flows} flows for {branches} branches: each branch needs the same number of them")

    def digest(self, plan: Plan) -> str:
        """SHA-256 of the request and its plan: sweeps of the same digest are parts of one."""
        return sha256(TypeAdapter(AskedSweep).dump_json(self) + digest(plan).encode()).hexdigest()
