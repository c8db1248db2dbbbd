"""The machine's own time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class RealTime:
    """Fulfils `IntervalClock`."""

    def now(self) -> float:
        return time.monotonic()

    @contextmanager
    def every(self, seconds: float, tick: Callable[[], None]) -> Iterator[None]:
        """Call at fixed times: a late tick does not shift the others."""
        over = threading.Event()
        errors: list[BaseException] = []
        begin = self.now()

        def run() -> None:
            try:
                while not over.wait(seconds - (self.now() - begin) % seconds):
                    tick()
            except BaseException as error:  # thread boundary: raised where the context ends
                errors.append(error)

        thread = threading.Thread(target=run, name="ticks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if errors:
            raise errors[0]
