"""The worker: a process in the generator's namespace, on the generator's CPU, that runs trials on request.

`python -m resources.libraries.python.drivers.generators.builtin.worker`. In comes its specification as a line of JSON,
out goes how it will send; then per trial in comes `prepare`, out goes `ready` (frames made, counters read), in comes
`go`, and out goes the report; `stop` in between ends the trial early. Instead of any answer there may be an error; one
about the specification, and the end of the input, end the worker.
"""

import gc
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from resources.libraries.python.dialogue import JsonPipe
from resources.libraries.python.drivers.generators.builtin import kernel, wire
from resources.libraries.python.drivers.generators.builtin.ports import FlowPorts
from resources.libraries.python.drivers.generators.xdp.bpf import listen
from resources.libraries.python.errors import CsitError
from resources.libraries.python.parent_death import die_with_parent

_HIGHEST = -20


class Exchange(JsonPipe):
    """The worker's end of the conversation with its driver."""

    def stop_asked(self) -> bool:
        """Return whether the driver has sent something while a trial runs: only `stop` can that be."""
        if not self.has_input():
            return False
        self.hear()
        return True

    def ready(self) -> None:
        """Report ready and wait for `go`; without it the driver has exited, and so does this process."""
        self.say({"ready": True})
        if self.hear() != {"do": "go"}:
            raise SystemExit("no word to go: the driver is gone")


def _open(exchange: Exchange, request: dict[str, Any]) -> FlowPorts | None:
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
    die_with_parent()
    kernel.sharpen_timers()
    listen()
    exchange = Exchange()
    ports: FlowPorts | None = None
    while request := exchange.hear():
        match request:
            case {"prepare": trial} if ports is not None:
                try:
                    exchange.say(asdict(ports.trial(wire.trial_spec(trial), exchange.ready)))
                except CsitError as error:
                    exchange.fail(error)
                gc.collect()
            case {"flows": _}:
                if (ports := _open(exchange, request)) is None:
                    return
                # what stays is moved out of the collector's sight, and the collector never runs in a trial
                gc.freeze()
                gc.disable()
            case _:  # the word to stop, when the trial had just ended
                continue
    if ports is not None:
        ports.close()


if __name__ == "__main__":
    main()
