"""The back-to-back frame benchmark of RFC 9004, which updates section 26.4 of RFC 2544. Pure.

Bursts are sent at the highest rate of the generator, to all instances in both directions at once. The longest burst of
which no frame is lost is searched in each of several repetitions, and their mean is the result. A burst that loses
frames is sent once more, and has failed only if it loses frames again (loss verification): a pause of the host is no
limit of the system. A burst that the generator did not send at its rate is sent again, as a shorter or a slower one
says nothing about that length. The size of the buffer follows from it in seconds: its implied time is the mean burst
over the rate at which it was sent; the corrected time takes off what the system forwards meanwhile, at its throughput.
"""

from collections.abc import Callable
from statistics import fmean, stdev

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.result import BackToBack
from resources.libraries.python.quantities import rate, rates

PURPOSE = "back-to-back"
_FIRST = 64
"""Frames of the first burst of a flow."""
_LONGEST_S = 2.0
"""A burst that lasts so long without a loss shows no buffer (RFC 2544: the least duration of a trial)."""
_RESOLUTION = 0.01
"""Of the length of a burst; one frame where that is more."""
_TRIES = 5
"""To send a burst at its rate: one that the generator cut short or drew out is no burst of that length."""
_FULL = 0.99
"""Share of a burst that must have been sent: what is never sent has not passed."""


def measure_back_to_back(
    measure: Callable[[Trial], TrialResult],
    frame: Frame,
    *,
    flows: int,
    load_pps: float,
    throughput_pps: float | None,
    repetitions: int,
    report: Callable[[int], None] = lambda _: None,
) -> BackToBack:
    """Search the longest burst without a loss, again and again.

    `load_pps`: Rate at which bursts are sent, aggregate.
    `throughput_pps`: NDR, aggregate; None where it was not found.
    `repetitions`: Searches; RFC 2544 wants 50 or more.
    `report`: Called with the number of each repetition before it, from 1.

    Raises:
        Unsupported: The throughput is that of the bursts, so that no buffer fills; or the generator sent nothing.
    """
    if throughput_pps is not None and throughput_pps >= load_pps:
        bursts, throughput = rates(load_pps, throughput_pps)
        raise Unsupported(f"bursts can be sent at {bursts}, and NDR is {throughput}: no buffer fills")
    search = _Bursts(measure, frame, flows, load_pps)
    guess, found = _FIRST, list[int]()
    for number in range(1, repetitions + 1):
        report(number)
        guess = search.longest(max(1, guess))
        found.append(guess)
    if not search.offered_pps:
        raise Unsupported(f"the generator sent no burst at {rate(load_pps)}")
    mean = fmean(found)
    offered_pps = fmean(search.offered_pps)
    implied_s = mean * flows / offered_pps
    forwarded = min(1.0, (throughput_pps or 0.0) / offered_pps)
    return BackToBack(
        offered_pps=offered_pps,
        flows=flows,
        frames=tuple(found),
        mean_frames=mean,
        stdev_frames=stdev(found) if len(found) > 1 else None,
        endless=max(found) >= search.most,
        implied_buffer_s=implied_s,
        corrected_buffer_s=implied_s * (1 - forwarded),
        trials=len(search.offered_pps),
    )


class _Bursts:
    """Bursts of one frame size at one rate."""

    def __init__(self, measure: Callable[[Trial], TrialResult], frame: Frame, flows: int, load_pps: float) -> None:
        self._measure = measure
        self._frame = frame
        self._flows = flows
        self._flow_pps = load_pps / flows
        self._load_pps = load_pps
        self.most = round(_LONGEST_S * self._flow_pps)
        """Frames of the longest burst of a flow."""
        self.offered_pps: list[float] = []
        """Rate of each burst as it was sent, aggregate."""

    def longest(self, guess: int) -> int:
        """Search from a guess: double or halve the length until the answer is in between, then bisect."""
        low, high = 0, self.most + 1
        length = min(guess, self.most)
        while low == 0 or high > self.most:
            if self._passes(length):
                low = length
                if low == self.most:
                    return low
                length = min(2 * length, self.most, max(low + 1, high - 1))
            else:
                high = length
                if high == 1:
                    return 0
                length = max(length // 2, low + 1 if low else 1)
            if low and high - low <= 1:
                return low
        while high - low > max(1, round(_RESOLUTION * low)):
            middle = (low + high) // 2
            low, high = (middle, high) if self._passes(middle) else (low, middle)
        return low

    def _passes(self, length: int) -> bool:
        """Whether a burst comes back whole, at the first or the second attempt."""
        return any(self._whole(length) for _ in range(2))

    def _whole(self, length: int) -> bool:
        trial = Trial(load_pps=self._load_pps, duration_s=length / self._flow_pps, frame=self._frame, purpose=PURPOSE)
        for _ in range(_TRIES):
            result = self._measure(trial)
            if not result.generator_limited:
                break
        if result.offered_duration_s > 0:
            self.offered_pps.append(result.sent / result.offered_duration_s)
        return result.sent >= max(1, _FULL * length * self._flows) and result.received >= result.sent


def bursts_in_words(found: BackToBack) -> str:
    """The longest bursts in words."""
    more = "at least " if found.endless else ""
    spread = "" if found.stdev_frames is None else f" ± {found.stdev_frames:,.0f}"
    return (
        f"back-to-back: {more}{found.mean_frames:,.0f}{spread} frames of each flow at {rate(found.offered_pps)}, a "
        f"buffer of {found.corrected_buffer_s * 1e6:.0f} µs"
    )
