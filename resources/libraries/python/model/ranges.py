"""Lists of numbers such as `0-3,8`."""

import re
from collections.abc import Collection

from resources.libraries.python.model.bounds import MAX_DIGITS, MAX_LISTED, quoted


def expand(ranges: str) -> tuple[int, ...]:
    """Expand `0-3,8` into (0, 1, 2, 3, 8).

    Raises:
        ValueError: It is no such list, a range runs backwards, or there are more than `MAX_LISTED` numbers.
    """
    numbers: list[int] = []
    for part in ranges.replace(" ", "").split(","):
        match = re.fullmatch(rf"([0-9]{{1,{MAX_DIGITS}}})(?:-([0-9]{{1,{MAX_DIGITS}}}))?", part)
        if match is None:
            raise ValueError(f"'{quoted(ranges)}' is not a list of numbers like 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {part} in '{quoted(ranges)}' runs backwards")
        if len(numbers) + last - first >= MAX_LISTED:
            raise ValueError(f"'{quoted(ranges)}' lists more than {MAX_LISTED:,} numbers")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)


def ranges(numbers: Collection[int]) -> str:
    """The short form of a list of numbers: `0-3,8`."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ",".join(str(row[0]) if len(row) == 1 else f"{row[0]}-{row[-1]}" for row in rows)
