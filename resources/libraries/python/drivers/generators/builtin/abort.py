"""Ending a trial early: how many packets are lost for certain while it still runs."""

from collections.abc import Callable, Sequence

EVERY_S = 0.1
"""Between two looks. A packet that has been on its way for longer is lost."""


class LossWatch:
    """Compares what had been sent at the look before with what has come back by now.

    Nothing is guessed from a rate: a packet counts as lost when it had been sent at the look before and the counter
    of its flow has not gone that far. So what is said to be lost is lost, and a trial that is not ended early
    is measured as without the check.
    """

    def __init__(
        self,
        received: Callable[[], Sequence[int]],
        before: Sequence[int],
        most_lost: int | None,
        told_to_stop: Callable[[], bool] = lambda: False,
        tell: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        """Start watching.

        Args:
            received: counters of the packets that came back, per flow.
            before: what they were before the trial.
            most_lost: how many may be lost; None: any number.
            told_to_stop: Whether another worker has ended the trial.
            tell: Called at each look with the packets sent; the trial then also ends where nothing may be lost.
        """
        self._received = received
        self._most_lost = most_lost
        self._told_to_stop = told_to_stop
        self._tell = tell
        self._before = before
        self._sent: Sequence[int] = [0] * len(before)

    @property
    def needed(self) -> bool:
        """Whether any check is needed."""
        return self._most_lost is not None or self._tell is not None

    def ends_it(self, sent: Sequence[int]) -> bool:
        """Look; to be called every 0.1 s and not more often.

        Args:
            sent: packets sent so far per flow, probes included.
        """
        if self._tell is not None:
            self._tell(sent)
        if self._most_lost is None:
            return self._tell is not None and self._told_to_stop()
        received = self._received()
        lost = sum(
            max(0, earlier - (now - before))
            for earlier, now, before in zip(self._sent, received, self._before, strict=True)
        )
        self._sent = tuple(sent)
        return lost > self._most_lost or self._told_to_stop()
