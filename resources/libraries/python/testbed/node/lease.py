"""The right of a run to a testbed, kept alive for as long as the run lives."""

import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.redaction import keep_secret
from resources.libraries.python.testbed.node.reservation import VARIABLE, Claim, ReservableNode, acquire, release, renew

_BEATS = 4
"""Renewals in the time of a lease: three may be lost."""
_LONGEST_BEAT_S = 30.0
_PATIENCE_S = 5.0
_log = logging.getLogger(__name__)


class Lease:
    """A reservation of all nodes that is renewed in the background. A context manager.

    With a token, or with one in the environment variable CSIT_RESERVATION, it joins the reservation that there is, and
    leaves it to its holder.
    """

    def __init__(
        self,
        nodes: Mapping[str, ReservableNode],
        testbed: str,
        reason: str,
        lease_s: float = 120.0,
        token: str | None = None,
    ) -> None:
        """Prepare. Nothing happens before `with`.

        `nodes`: By their names; several threads use their connections.
        `lease_s`: How long the nodes stay reserved when this process dies.
        `token`: Of the reservation to join; None for the one in the environment, or else a new one.
        """
        self._nodes = dict(nodes)
        self._joins = token or os.environ.get(VARIABLE) or None
        claim = Claim(testbed=testbed, reason=reason, lease_s=lease_s, heartbeat=True)
        self._claim = replace(claim, token=self._joins) if self._joins else claim
        keep_secret(self._claim.token)
        self._to_release = {} if self._joins else self._nodes
        self._ours_until: dict[str, float] = {}
        self._losses: dict[str, str] = {}
        self._last_errors: dict[str, str] = {}
        self._done = threading.Event()
        self._beats: list[threading.Thread] = []
        self.took_over: tuple[str, ...] = ()
        """A sentence for each node whose earlier holder had let its lease run out, such as by being killed."""

    @property
    def token(self) -> str:
        """Token that proves to be the holder; for processes that are part of this run."""
        return self._claim.token

    def __enter__(self) -> Self:
        """Reserve all nodes, or none, and begin to renew.

        Raises:
            InUse: Another owner has one; the text says who, since when and why.
            CsitError: A node cannot be asked.
        """
        begin = _now_s()
        if self._joins:
            try:
                self._join()
            except CsitError:
                self._release()
                raise
        else:
            self.took_over = acquire(self._nodes, self._claim)
            self._ours_until = dict.fromkeys(self._nodes, begin + self._claim.lease_s)
        for sentence in self.took_over:
            _log.warning("%s", sentence)
        self._done.clear()
        self._beats = [
            threading.Thread(target=self._keep, args=(name,), name=f"lease of {name}", daemon=True)
            for name in self._nodes
        ]
        for beat in self._beats:
            beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop renewing, and give the nodes back unless they were joined. A node that does not answer frees itself."""
        self._done.set()
        for beat in self._beats:
            beat.join(_PATIENCE_S)
        self._release()

    def _release(self) -> None:
        try:
            for sentence in release(self._to_release, self._claim.token):
                _log.warning("%s", sentence)
        except CsitError as failure:
            _log.warning("not given back, it runs out within %.0f s: %s", self._claim.lease_s, failure)

    def lost(self) -> str | None:
        """Return why another owner may have the testbed by now; None while it is certainly ours."""
        for name, why in list(self._losses.items()):
            return f"the reservation of {name} is lost: {why}"
        now = _now_s()
        for name, until in list(self._ours_until.items()):
            if now >= until:
                last = self._last_errors.get(name, "no answer")
                return f"the reservation of {name} ran out {now - until:.0f} s ago, it could not be renewed: {last}"
        return None

    def _join(self) -> None:
        for name, node in sorted(self._nodes.items()):
            begin = _now_s()
            holder, why = renew(node, self._claim.token, self._claim.lease_s)
            if holder is not None:
                self._ours_until[name] = begin + holder.left_s
            elif node.of_controller:
                self.took_over += acquire({name: node}, self._claim)
                self._to_release[name] = node
                self._ours_until[name] = begin + self._claim.lease_s
            else:
                raise InUse(f"{name} is not reserved with the token in {VARIABLE}: {why}")

    def _keep(self, name: str) -> None:
        """Renew one node until the end; each has a thread, so that one that hangs does not hold up the others."""
        pause_s = min(self._claim.lease_s / _BEATS, _LONGEST_BEAT_S)
        while not self._done.wait(pause_s) and name not in self._losses:
            with suppress(CsitError):
                self._renew(name)

    def _renew(self, name: str) -> None:
        # From before the question: the node cannot have begun to count earlier.
        begin = _now_s()
        try:
            holder, why = renew(self._nodes[name], self._claim.token, self._claim.lease_s)
        except CsitError as error:
            self._last_errors[name] = str(error)
            _log.warning("the reservation of %s was not renewed: %s", name, error)
            raise
        if holder is None:
            self._losses[name] = why
            _log.error("the reservation of %s is lost: %s", name, why)
        else:
            self._ours_until[name] = begin + holder.left_s


def _now_s() -> float:
    """Seconds that go on while this machine sleeps, as they do on the nodes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
