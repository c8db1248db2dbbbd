"""Early abort of a simulated trial: counters are polled in virtual time, as a generator polls its own.

Losses of overload come evenly over a trial; those of a stall at one instant. The outcome of a whole trial is drawn
first, so that a trial takes the same random numbers with and without an abort (but for the instants of stalls).
"""

from dataclasses import dataclass
from random import Random

from resources.libraries.python.drivers.sim.models import Model, Stall

POLL_S = 0.1
"""Virtual seconds from one look at the counters to the next."""


@dataclass(frozen=True, slots=True)
class TrialPart:
    """Packets sent and received in a trial, or in the part of it before the abort."""

    sent: int
    received: int
    duration_s: float
    aborted: bool


def forward(
    model: Model, load_pps: float, duration_s: float, rng: Random, abort_loss_ratio: float | None = None
) -> TrialPart:
    """Run one trial on a model.

    Args:
        model: The system under test.
        load_pps: Aggregate.
        duration_s: Of the whole trial.
        rng: Random numbers of the system.
        abort_loss_ratio: As `Trial.abort_loss_ratio`: ends the trial at the first poll by which more than this share of
            the packets of the whole trial is lost.
    """
    sent, received = model.forward(load_pps, duration_s, rng)
    lost = sent - received
    if abort_loss_ratio is None or lost <= abort_loss_ratio * sent:
        return TrialPart(sent, received, duration_s, aborted=False)
    stalls = model.stalls(load_pps, duration_s, lost) if isinstance(model, Stall) else 0
    steady = lost - stalls * model.stall_packets if isinstance(model, Stall) else lost
    instants = [rng.random() * duration_s for _ in range(stalls)]
    poll = 1
    while (now_s := poll * POLL_S) < duration_s - POLL_S / 2:
        share = now_s / duration_s
        stalled = sum(instant <= now_s for instant in instants)
        lost_by_now = int(steady * share) + (lost - steady) * stalled // max(1, stalls)
        if lost_by_now > abort_loss_ratio * sent:
            sent_by_now = round(sent * share)
            return TrialPart(sent_by_now, sent_by_now - min(lost_by_now, sent_by_now), now_s, aborted=True)
        poll += 1
    return TrialPart(sent, received, duration_s, aborted=False)
