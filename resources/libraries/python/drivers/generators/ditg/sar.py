"""The sender's real rate, from the system activity reporter (sysstat's `sar`), second by second. Parsing is pure."""

from collections.abc import Collection, Sequence

PROGRAM = "sar"
ENVIRONMENT = {"LC_ALL": "C", "S_COLORS": "never", "S_TIME_FORMAT": "ISO"}


def command(interfaces: Sequence[str], seconds: int) -> list[str]:
    """Report these interfaces each second."""
    return [PROGRAM, "-n", "DEV", f"--iface={','.join(interfaces)}", "1", str(seconds)]


def sent_by_second(said: str, interfaces: Collection[str]) -> tuple[float, ...]:
    """Packets per second that left these interfaces together, by second.

    Args:
        said: All that sar wrote.
        interfaces: Whose packets.
    """
    totals: dict[str, float] = {}
    column = None
    for line in said.splitlines():
        words = line.split()
        if "txpck/s" in words:
            column = words.index("txpck/s")
        elif column is not None and len(words) > column and words[1] in interfaces and words[0] != "Average:":
            totals[words[0]] = totals.get(words[0], 0.0) + float(words[column])
    return tuple(totals.values())
