"""Durations as people write them: `90s`, `30m`, `8h`, `1h30m`."""

import re

from resources.libraries.python.errors import ConfigError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 30 * 86400.0


def seconds(text: str, option: str, *, least_s: float = 0.0) -> float:
    """Seconds of a duration; a bare number is seconds.

    Args:
        text: Such as `8h` or `1h30m`.
        option: What it is for, to be named in an error.
        least_s: What it must be at least.

    Raises:
        ConfigError: It is none, or too short, or longer than 30 days.
    """
    words = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", words):
        total = float(words)
    elif re.fullmatch(r"(\d+(\.\d+)?[smhd])+", words):
        total = sum(float(number) * _SECONDS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", words))
    else:
        raise ConfigError(f"{option}: no duration in '{text}'; write 90s, 30m, 8h or 1h30m")
    if not least_s <= total <= LONGEST_S:
        raise ConfigError(f"{option}: {text} is {total:.0f} s; it must be {least_s:.0f} s to 30 days")
    return total
