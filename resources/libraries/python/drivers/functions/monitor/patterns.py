"""What payloads are searched for. Pure."""

_SPREAD = 2_654_435_761
"""Odd and near 2^32 divided by the golden ratio: multiples of it, modulo 2^32, have little in common."""


def patterns(count: int) -> tuple[str, ...]:
    """Contents that no packet of a generator has: eight hexadecimal digits each, all different.

    Args:
        count: How many, up to 2^32.
    """
    return tuple(f"{number * _SPREAD % 2**32:08x}" for number in range(1, count + 1))
