"""The worker: a process in the generator's namespace, on the generator's CPU, that runs trials on request.

`python -m resources.libraries.python.drivers.generators.builtin.worker`. In comes its specification as a line of JSON,
out goes how it will send; then per trial in comes `prepare`, out goes `ready` (frames made, counters read), in comes
`go`, and out goes the report; `stop` in between ends the trial early. Instead of any answer there may be an error. The
end of the input ends the worker.
"""

import gc
import json
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from resources.libraries.python.drivers.generators.builtin import kernel, wire
from resources.libraries.python.drivers.generators.builtin.ports import FlowPorts
from resources.libraries.python.drivers.generators.xdp import live_frames
from resources.libraries.python.errors import CsitError, NotReady

_HIGHEST = -20


class Exchange:
    """Lines in, lines out."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._source = source
        self._sink = sink

    def say(self, record: object) -> None:
        """Answer."""
        self._sink.write(wire.encode(record).decode())
        self._sink.flush()

    def fail(self, error: CsitError) -> None:
        """Answer with an error."""
        if isinstance(error, NotReady):
            self.say({"not_ready": {"what": error.what, "after_s": error.after_s, "last_seen": error.last_seen}})
        else:
            self.say({"error": str(error)})

    def hear(self) -> dict[str, Any] | None:
        """The next request; None when the driver is gone."""
        line = self._source.readline()
        return json.loads(line) if line.endswith("\n") else None

    def stop_asked(self) -> bool:
        """Whether the driver has said something while a trial runs, which can only be that it is to end."""
        if not select.select([self._source], [], [], 0)[0]:
            return False
        self.hear()
        return True

    def ready(self) -> None:
        """Say so and wait for the word to go; without it there is no driver any more, and this process ends."""
        self.say({"ready": True})
        if self.hear() != {"do": "go"}:
            raise SystemExit("no word to go: the driver is gone")


def _open(exchange: Exchange) -> FlowPorts | None:
    request = exchange.hear()
    if request is None:
        return None
    try:
        spec = wire.worker_spec(request)
        if spec.cpus:
            os.sched_setaffinity(0, spec.cpus)
        if spec.alone:
            # what else runs on this core is incidental; a time slice of it would be a stall of 4 ms
            _go_first()
        if spec.namespace:
            kernel.enter_namespace(spec.namespace)
        ports = FlowPorts(spec, exchange.stop_asked)
    except CsitError as error:
        exchange.fail(error)
        return None
    except OSError as error:
        exchange.fail(CsitError(f"the generator cannot run on CPUs {spec.cpus}: {error.strerror}"))
        return None
    exchange.say({"sending": ports.sending, "fallback": ports.fallback})
    return ports


def _go_first() -> None:
    """Before all ordinary threads, those of other sessions included: these the kernel weighs as groups (autogroup)."""
    os.setpriority(os.PRIO_PROCESS, 0, _HIGHEST)
    with suppress(OSError):  # there is no such file where the kernel does not group
        Path("/proc/self/autogroup").write_text(str(_HIGHEST), encoding="ascii")


def main() -> None:
    """Serve one driver."""
    kernel.die_with_parent()
    kernel.sharpen_timers()
    live_frames.listen()
    exchange = Exchange(sys.stdin, sys.stdout)
    ports = _open(exchange)
    if ports is None:
        return
    # what stays is moved out of the collector's sight, and the collector never runs in a trial
    gc.freeze()
    gc.disable()
    while request := exchange.hear():
        if "prepare" not in request:  # the word to stop, when the trial had just ended
            continue
        try:
            exchange.say(ports.trial(wire.trial_spec(request["prepare"]), exchange.ready))
        except CsitError as error:
            exchange.fail(error)
        gc.collect()
    ports.close()


if __name__ == "__main__":
    main()
