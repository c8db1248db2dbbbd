"""Sending out of TX rings."""

from collections.abc import Sequence
from functools import partial

from resources.libraries.python.drivers.generators.builtin.abort import LossWatch
from resources.libraries.python.drivers.generators.builtin.parallel_calls import Aside, together
from resources.libraries.python.drivers.generators.builtin.schedule import Schedule, schedules
from resources.libraries.python.drivers.generators.builtin.sender import SentTraffic
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.ring.probe import ProbeSender
from resources.libraries.python.drivers.generators.ring.send_loops import send_paced, send_unpaced
from resources.libraries.python.drivers.generators.ring.tx_ring import TxRing


class RingSender:
    """Fulfils `builtin.sender.Sender`. The rings stay from trial to trial as long as the frame sizes do."""

    name = "AF_PACKET TX ring"

    def __init__(self, flows: Sequence[FlowSpec]) -> None:
        self._flows = tuple(flows)
        self._made: tuple[tuple[int, ...], bool] | None = None
        self._rings: list[TxRing] = []
        self._probes: list[ProbeSender] = []
        self._load = self._probe = Schedule(0.0, len(self._flows), 0)
        self._duration_s, self._unpaced = 0.0, False
        self._aside = Aside()

    def prepare(self, spec: TrialSpec) -> None:
        """Fill the rings with the trial's frames.

        Raises:
            CsitError: a port is gone or refuses the frames.
        """
        self._duration_s, self._unpaced = spec.duration_s, spec.load_pps is None
        self._load, self._probe = schedules(spec, len(self._flows))
        if (wanted := (spec.frame_bytes, spec.udp)) != self._made:
            self._empty()
            self._rings = together([partial(TxRing, flow, spec.frame_bytes, udp=spec.udp) for flow in self._flows])
            self._made = wanted
        if self._probe.total:
            self._probes = self._probes or [ProbeSender(flow) for flow in self._flows]
            for sender in self._probes:
                sender.prepare(spec.frame_bytes, self._probe.per_flow)

    def send(self, watch: LossWatch) -> SentTraffic:
        """Send what was prepared.

        Raises:
            CsitError: a port does not send.
        """
        if self._unpaced:
            return send_unpaced(self._rings, self._duration_s)
        return send_paced(self._rings, self._load, self._probes if self._probe.total else (), self._probe, watch)

    def _empty(self) -> None:
        self._made = None
        self._aside.close(self._rings)
        self._rings = []

    def close(self) -> None:
        self._empty()
        self._aside.close(self._probes)
        self._probes = []
        self._aside.wait()
