"""One flow of packets, counted in blocks while it runs."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from csit_utils.bench.nf_under_load import ServiceUnderLoad
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.trial import TrialResult

LEAST_PPS, _MOST_PPS, _STEP = 400e3, 4e6, 1.4
"""Loads among which one is looked for that is above the capacity of the NF on this machine."""
_TRY_S = 0.5
_OVERLOADED, _MOST_FORWARDED = 0.7, 0.9
"""Of what was sent, when a load is looked for and in each flow. An NF that forwards more has capacity left, or
nearly."""
_BEGIN_S, _SETTLE_S = 0.2, 0.04
"""Until queues are full; after each switch, longer than a window and shorter than the time between two readings."""
_STARTED_WITHIN_S = 20.0
_PRIORITY = 3
"""Before generator and data threads: packets are counted when a block ends, not when a CPU happens to be free."""


class NotOverloadedError(CsitError):
    """The NF forwarded nearly all: what watching takes would not be missing."""


@contextmanager
def prompt(cpu: int | None) -> Iterator[None]:
    """Have the calling thread run at once whenever it has something to do; on that CPU, if one is given."""
    policy, parameters, cpus = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
    stay_on(cpu)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        os.sched_setaffinity(0, cpus)


def overload_pps(here: ServiceUnderLoad, load_pps: float = LEAST_PPS) -> float:
    """A load of which the NF forwards a part: then what watching takes is missing at the receiver.

    Args:
        here: Has the NF.
        load_pps: The least that comes into question.

    Raises:
        NotOverloadedError: It forwards all that the generator can send.
    """
    share = 1.0
    while load_pps <= _MOST_PPS:
        sent, received = _packets(here.send(load_pps, _TRY_S))
        share = received / sent
        if share <= _OVERLOADED:
            return load_pps
        load_pps *= _STEP
    raise NotOverloadedError(f"{share:.0%} of the packets of the highest load came back: the NF is not the bottleneck")


def _packets(result: TrialResult) -> tuple[int, int]:
    return sum(flow.sent for flow in result.flows), sum(flow.received for flow in result.flows)


class BlockFlow:
    """Runs from entering until its time is over."""

    def __init__(self, here: ServiceUnderLoad, load_pps: float, lasts_s: float) -> None:
        """Nothing is sent yet."""
        self._here = here
        self._load_pps = load_pps
        self._lasts_s = lasts_s
        self._end_s = 0.0
        self._held = ExitStack()
        self._trial: Future[TrialResult] | None = None

    def __enter__(self) -> Self:
        """Wait until packets come back."""
        pool = self._held.enter_context(ThreadPoolExecutor(1, "flow"))
        before = self._here.received()
        self._trial = pool.submit(self._here.send, self._load_pps, self._lasts_s)
        wait_until(
            "packets of a flow", lambda: "none came" if self._here.received() == before else "", _STARTED_WITHIN_S
        )
        self._end_s = time.monotonic() + self._lasts_s
        time.sleep(_BEGIN_S)
        return self

    def left_s(self) -> float:
        """How long packets will come, in seconds."""
        return self._end_s - time.monotonic()

    def block(self, block_s: float) -> tuple[float, float]:
        """Let a switch settle; then count for a block.

        Returns:
            Packets received per second, and how many seconds it took with settling.

        Raises:
            CsitError: The flow has ended meanwhile.
        """
        begin_s = time.monotonic()
        time.sleep(_SETTLE_S)
        before, from_s = self._count()
        time.sleep(max(0.0, from_s + block_s - time.monotonic()))
        after, until_s = self._count()
        assert self._trial is not None  # noqa: S101 - entered
        if self._trial.done():
            self._trial.result()  # its own error, if it has one
            raise CsitError(f"the flow of {self._lasts_s:g} s ended before its blocks did")
        return (after - before) / (until_s - from_s), until_s - begin_s

    def _count(self) -> tuple[int, float]:
        return self._here.received(), time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for its end.

        Raises:
            NotOverloadedError: The NF was not the bottleneck.
        """
        self._held.close()
        if error is None and self._trial is not None:
            sent, received = _packets(self._trial.result())
            if received > _MOST_FORWARDED * sent:
                raise NotOverloadedError(f"{received} of {sent} packets came back: the NF is not the bottleneck")
