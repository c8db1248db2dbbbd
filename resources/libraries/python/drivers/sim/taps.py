"""Simulated passive NFs: each gets copies, and loses alone what it has no time for."""

from collections.abc import Mapping

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan


class Copies:
    """What passive NFs got since the beginning.

    Args:
        plan: Has them, and their links to the vSwitch.
    """

    def __init__(self, plan: Plan) -> None:
        self._got = {tap.name: 0 for tap in plan.taps}
        self._lost = dict(self._got)
        self._at = {tap.interface: tap.name for tap in plan.taps}
        ends = {link.b.interface: link.a.interface for link in plan.links if link.b.owner in self._got}
        self._towards = {ends[tap.interface]: tap.name for tap in plan.taps}

    def add(self, name: str, copies: int, most: int) -> None:
        """Count copies, of which a passive NF takes no more than `most`."""
        got = min(copies, most)
        self._got[name] += got
        self._lost[name] += copies - got

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """By interface: those of passive NFs, and the vSwitch's towards them, which drop what finds no room."""
        return {
            **{port: InterfaceCounters(self._got[name], 0, 0, 0) for port, name in self._at.items()},
            **{
                port: InterfaceCounters(0, self._got[name], 0, self._lost[name]) for port, name in self._towards.items()
            },
        }
