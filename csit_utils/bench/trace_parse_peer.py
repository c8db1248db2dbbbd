"""The peer of `trace_parse`: the graph out of the text of `trace-cmd report -N -t`, line by line in plain Python."""

from collections.abc import Collection
from pathlib import Path

Pairs = dict[tuple[str, str], tuple[int, float]]
"""How often one event followed another on a thread, and seconds between the two in all."""


def pairs_of_text(path: Path, threads: Collection[int]) -> Pairs:
    """Count pairs of events.

    Args:
        path: A line is `comm-pid [cpu] seconds.nanoseconds: event: data`.
        threads: Those that are followed.
    """
    wanted = {str(thread) for thread in threads}
    last: dict[str, tuple[str, int]] = {}
    counts: dict[tuple[str, str], int] = {}
    times: dict[tuple[str, str], int] = {}

    def happened(thread: str, vertex: str, now: int) -> None:
        before = last.get(thread)
        last[thread] = (vertex, now)
        if before is not None:
            pair = (before[0], vertex)
            counts[pair] = counts.get(pair, 0) + 1
            times[pair] = times.get(pair, 0) + now - before[1]

    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            head, bracket, rest = line.partition("] ")
            if not bracket:
                continue
            stamp, event, data = rest.split(":", 2)
            event, now = event.strip(), int(stamp.replace(".", ""))
            if event == "sched_switch":
                before, _, after = data.partition(" ==> ")
                thread = _value(before, "prev_pid=")
                if thread in wanted:
                    happened(thread, f"sched_switch:out:{_value(before, 'prev_state=')[0]}", now)
                thread = _value(after, "next_pid=")
                if thread in wanted:
                    happened(thread, "sched_switch:in", now)
                continue
            thread = _value(data, "pid=") if event == "sched_wakeup" else head.rpartition(" [")[0].rpartition("-")[2]
            if (thread := thread.strip()) in wanted:
                happened(thread, _vertex(event, data), now)
    return {pair: (count, times[pair] / 1e9) for pair, count in counts.items()}


def _vertex(event: str, data: str) -> str:
    if event == "napi_poll":
        *_, work, _, budget = data.split()
        return f"napi_poll:{'idle' if work == '0' else 'full' if int(work) >= int(budget) else 'part'}"
    if event == "net_dev_xmit":
        return "net_dev_xmit:sent" if _value(data, "rc=") == "0" else "net_dev_xmit:refused"
    if event in ("softirq_entry", "softirq_exit"):
        return f"{event}:{_value(data, 'action=').rstrip(']')}"
    if event == "irq_handler_entry":
        return f"{event}:{_value(data, 'name=')}"
    return event


def _value(data: str, name: str) -> str:
    """What stands behind a name, up to the next blank."""
    return data.partition(name)[2].split(None, 1)[0]
