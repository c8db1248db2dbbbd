"""A wall clock that tests step: Debian's `faketime`, preloaded into a run and all that it starts."""

from pathlib import Path

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""The library; None where it is not installed."""


class Clock:
    """The wall clock of a run and of all that it starts, by a preloaded library; monotonic clocks go on as they do."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.step("+0")

    def step(self, offset: str) -> None:
        """Set it that far from the machine's: `+1d`."""
        self._file.write_text(f"{offset}\n", encoding="ascii")

    def variables(self) -> dict[str, str]:
        """Of the environment of a run."""
        return {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
