"""Events in a simulated system, packet by packet: an interruption at the one hit, and a stall of what all share.

The truth is a queue. Packets of a flow arrive at equal distances; while a part does not serve, up to `queue` of them
wait and all others are dropped. After a pause or a stall those that waited are served at the part's rate; what was
killed, restarted or not yet added keeps none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.arrivals import timeline
from resources.libraries.python.drivers.generators.builtin.flow_results import flow_timeline
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import Interruptions
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.model.measurements.trial import Direction, FlowTimeline, Trial
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.planning.names import VSWITCH

_NS = 10**9
_EVER = 1 << 62
_LEAD_S = 0.1
"""Between the request for an event and the first packet of the trial, as on real testbeds."""
_SERVICE_NS = 1000
"""Of a packet that has waited."""
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Interruption:
    """A time in which a part does not serve."""

    begin_ns: int
    end_ns: int
    queue: int
    """Packets that wait for its end; all others are dropped."""


class SimulatedEvents:
    """The event that the next timeline is to have."""

    def __init__(self, plan: Plan, truth: Interruptions, clock: VirtualClock, key: str) -> None:
        self._plan, self._truth, self._clock = plan, truth, clock
        self._key, self._trials = key, 0
        self._coming: Disturbance | None = None
        self._happened: tuple[EventOccurrence, ...] = ()

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place in the next trial.

        Raises:
            Unsupported: It cannot happen to the target.
        """
        if VSWITCH in coming.targets and coming.event not in (PartEvent.KILL, PartEvent.RESTART):
            raise Unsupported(f"{coming.event} is not possible for the simulated vSwitch")
        self._coming, self._happened = coming, ()

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        return self._happened

    def timelines(
        self, trial: Trial, bin_s: float, delays_ns: Mapping[tuple[int, Direction], float]
    ) -> tuple[FlowTimeline, ...]:
        """Outcome of every packet of a trial, by flow.

        `trial`: Its load is shared equally.
        `delays_ns`: Of each flow while nothing happens.
        """
        begin_ns = round(datetime.fromisoformat(self._clock.timestamp()).timestamp()) * _NS
        coming, self._coming = self._coming, None
        self._trials += 1
        key = f"{self._key}/{self._trials}/{coming}"
        rng, noise = Random(key), self._noise(trial, begin_ns, Random(f"{key}/noise"))  # noqa: S311 (reproducible)
        began_ns = 0 if coming is None else begin_ns + round((coming.after_s - _LEAD_S) * _NS)
        own = None if coming is None else self._interruption(coming, began_ns, rng)
        if coming is not None and own is not None:
            ended_ns = began_ns if own.end_ns == _EVER or coming.event is PartEvent.ADD else own.end_ns
            self._happened = (EventOccurrence(began_ns=began_ns, ended_ns=ended_ns, what=f"simulated {coming.event}"),)
        spacing_ns = _NS / (trial.load_pps / len(self._plan.flows))
        packets = round(trial.load_pps / len(self._plan.flows) * trial.duration_s)
        due_ns = begin_ns + np.rint(np.arange(packets) * spacing_ns).astype(np.int64)
        lines = []
        for flow in self._plan.flows:
            hit = None if coming is None or own is None else self._at(flow, coming, own, began_ns, rng)
            arrived_ns = served(due_ns, round(delays_ns[flow.instance, flow.direction]), hit)
            if noise is not None:
                arrived_ns[(due_ns >= noise.begin_ns) & (due_ns < noise.end_ns)] = 0
            came = int((arrived_ns > 0).sum())
            due = begin_ns, spacing_ns
            report = timeline(arrived_ns, due_ns, due, round(bin_s * _NS), sent=packets, frames=came)
            lines.append(flow_timeline(flow, report, bin_s))
        return tuple(lines)

    def _noise(self, trial: Trial, begin_ns: int, rng: Random) -> Interruption | None:
        """Return a stall of the whole host; None in most trials."""
        if rng.random() >= self._truth.noisy_share:
            return None
        first_ns = begin_ns + round(rng.random() * max(0.0, trial.duration_s - self._truth.noise_s) * _NS)
        return Interruption(first_ns, first_ns + round(self._truth.noise_s * _NS), 0)

    def _interruption(self, coming: Disturbance, began_ns: int, rng: Random) -> Interruption:
        truth, jitter = self._truth, 1 + _JITTER * (2 * rng.random() - 1)
        length_s = {
            PartEvent.KILL: float("inf"),
            PartEvent.RESTART: truth.restart_s * jitter,
            PartEvent.PAUSE: coming.hold_s,
            PartEvent.ADD: truth.add_s * jitter,
            PartEvent.RELOAD: truth.reload_s * jitter,
            PartEvent.MOVE: truth.move_s * jitter,
        }[coming.event]
        end_ns = _EVER if length_s == float("inf") else began_ns + round(length_s * _NS)
        queue = truth.queue if coming.event in (PartEvent.PAUSE, PartEvent.RELOAD, PartEvent.MOVE) else 0
        return Interruption(0 if coming.event is PartEvent.ADD else began_ns, end_ns, queue)

    def _at(
        self, flow: Flow, coming: Disturbance, own: Interruption, began_ns: int, rng: Random
    ) -> Interruption | None:
        """Cause of a flow's interruption: the event itself, or the stall of what all instances share."""
        paths = (
            path for path in self._plan.paths if (path.instance, path.direction) == (flow.instance, flow.direction)
        )
        if not {VSWITCH, *(hop.owner for path in paths for hop in path.hops)}.isdisjoint(coming.targets):
            return own
        stall_ns = round(self._truth.stall_s.get(coming.event, 0.0) * (1 + _JITTER * (2 * rng.random() - 1)) * _NS)
        return Interruption(began_ns, began_ns + stall_ns, self._truth.queue) if stall_ns else None


def served(due_ns: NDArray[np.int64], delay_ns: int, hit: Interruption | None) -> NDArray[np.int64]:
    """When each packet arrives; 0 for those that are dropped.

    `due_ns`: When each is sent, ascending.
    `delay_ns`: While nothing happens.
    `hit`: When the part does not serve, half of that delay after packets are sent.
    """
    at_ns = due_ns + delay_ns // 2
    done_ns = at_ns.copy()
    if hit is not None:
        first, after = np.searchsorted(at_ns, [hit.begin_ns, hit.end_ns])
        waiting = min(hit.queue, after - first)
        done_ns[first : first + waiting] = hit.end_ns + _SERVICE_NS * np.arange(1, waiting + 1)
        done_ns[first + waiting : after] = 0
        free_ns = hit.end_ns + _SERVICE_NS * waiting if waiting else 0
        for place in range(after, len(at_ns)):  # behind those that waited
            if at_ns[place] >= free_ns:
                break
            free_ns += _SERVICE_NS
            done_ns[place] = free_ns
    return np.where(done_ns > 0, done_ns + (delay_ns - delay_ns // 2), 0)
