"""What every way of sending does, and what it says of a trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.abort import LossWatch
from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec


@dataclass(frozen=True, slots=True)
class SentTraffic:
    """Packets that were sent in a trial, and when."""

    packets: tuple[int, ...]
    """Per flow, probes not counted."""
    probes: tuple[int, ...]
    """Per flow."""
    offered_s: float
    """From the first packet to the end of the last one's slot."""
    worst_lag_s: float
    """The furthest that sending fell behind its schedule."""
    aborted: bool = False
    """Whether it ended early for loss."""
    stamps_ns: Sequence[NDArray[np.int64]] | None = None
    """When each probe of a flow left, nanoseconds since the epoch, 0 when not known; None: it is in the frames."""


class Sender(Protocol):
    """Sends the load and the probes of a worker's flows."""

    name: str
    """In words, for results."""

    def prepare(self, spec: TrialSpec) -> None:
        """Make all ready for a trial, so that `send` starts at once.

        Raises:
            Unsupported: this way of sending cannot do such a trial.
            CsitError: a port is gone or refuses the frames.
        """

    def send(self, watch: LossWatch) -> SentTraffic:
        """Send what was prepared.

        Raises:
            CsitError: a port does not send.
        """

    def close(self) -> None:
        """Give everything back."""
