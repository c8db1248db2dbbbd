"""Virtual time: a trial of a second takes none."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Start of virtual time: a date that cannot be mistaken for that of a measurement."""


class VirtualClock:
    """Virtual time in seconds, which advances only by `advance`."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now(self) -> float:
        """Virtual seconds."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: Time does not go back.
        """
        if seconds < 0:
            raise ValueError(f"cannot advance by {seconds} s")
        self._now_s += seconds

    def timestamp(self) -> str:
        """Now as UTC in ISO 8601."""
        return (EPOCH + timedelta(seconds=self._now_s)).isoformat(timespec="milliseconds")
