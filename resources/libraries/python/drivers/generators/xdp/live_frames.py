"""A program that runs for live frames, in a thread that does nothing else."""

import signal
from contextlib import suppress
from threading import Thread

from resources.libraries.python.drivers.generators.xdp.bpf import XdpProgram
from resources.libraries.python.errors import CsitError

_SIGNAL = signal.SIGUSR1
_AGAIN_S = 0.001


def listen() -> None:
    """Let the signal that ends a run be heard without ending the process. From the main thread, once."""
    signal.signal(_SIGNAL, lambda *_: None)


class Running:
    """One call of the kernel, from the making of this object to `wait`."""

    def __init__(self, program: XdpProgram, frame: bytes, batch: int) -> None:
        """Start it.

        `program`: What runs.
        `frame`: What every frame is before the program changes it.
        `batch`: Frames between two flushes, in [1, 256].
        """
        self._error: CsitError | None = None
        self._thread = Thread(target=self._work, args=(program, frame, batch), daemon=True)
        self._thread.start()

    def _work(self, program: XdpProgram, frame: bytes, batch: int) -> None:
        try:
            program.run_live(frame, batch)
        except CsitError as error:
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether it has stopped, without a call of `end` by an error."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Have the kernel end it after the batch at hand; what it then takes down needs no waiting for."""
        with suppress(ProcessLookupError):
            if self._thread.ident is not None:
                signal.pthread_kill(self._thread.ident, _SIGNAL)

    def wait(self) -> None:
        """End it and wait until it has.

        Raises:
            CsitError: it had broken off.
        """
        while not self.ended:
            self.end()  # again, should it have been on its way into the kernel
            self._thread.join(_AGAIN_S)
        if self._error:
            raise self._error
