"""How a sender in Python that fell behind its schedule comes back to it. Pure."""

import math

from resources.libraries.python.drivers.generators.builtin.schedule import Schedule

_CATCH_UP = 1.1
_CATCH_UP_LIMIT = 2.0


class Pacer:
    """Says how many packets may be out by now.

    On time that is what the schedule says. After a stall longer than a queue could hide, the missing packets are not
    thrown at the system under test in one burst, which it would have to drop: the sender goes on at 1.1 to 2 times the
    rate, as needed to be on time at the end, until it meets the schedule again.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._slack = schedule.slack
        self._speed_pps = 0.0
        self._anchor_s = 0.0
        self._anchor = 0
        self.worst_lag_s = 0.0
        """The longest that the sender was behind."""

    def allowed(self, elapsed_s: float, sent: int) -> int:
        """Packets that may have been sent by now.

        Args:
            elapsed_s: time since the start of the schedule.
            sent: packets sent so far.
        """
        due = self._schedule.due(elapsed_s)
        if sent < due:
            self.worst_lag_s = max(self.worst_lag_s, elapsed_s - self._schedule.time_of(sent))
        if due - sent <= self._slack and not self._speed_pps:
            return due
        if self._speed_pps:
            caught = self._anchor + int((elapsed_s - self._anchor_s) * self._speed_pps)
            if caught >= due and due - sent <= self._slack:
                self._speed_pps = 0.0
                return due
            if caught - sent <= self._slack:
                return min(caught, due)
        return self._fall_behind(elapsed_s, sent, due)

    def _fall_behind(self, elapsed_s: float, sent: int, due: int) -> int:
        schedule = self._schedule
        left_s = schedule.length_s - elapsed_s
        needed_pps = (schedule.total - sent) / left_s if left_s > 0 else math.inf
        slowest, fastest = _CATCH_UP * schedule.rate_pps, _CATCH_UP_LIMIT * schedule.rate_pps
        self._speed_pps = min(max(slowest, needed_pps), fastest)
        self._anchor_s, self._anchor = elapsed_s, sent + self._slack
        return min(self._anchor, due)
