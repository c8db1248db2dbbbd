"""Lists of numbers as people write them: `0-3,8`."""

import re


def expand(ranges: str) -> tuple[int, ...]:
    """Turn `0-3,8` into (0, 1, 2, 3, 8). Raises ValueError on anything else."""
    numbers: list[int] = []
    for part in ranges.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise ValueError(f"'{ranges}' is not a list of numbers like 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 4096:
            raise ValueError(f"the range {part} in '{ranges}' runs backwards or is too long")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)
