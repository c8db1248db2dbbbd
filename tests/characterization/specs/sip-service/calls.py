#!/usr/bin/env python3
"""Offers calls of a scenario beside it to the edge proxies; prints the rate of calls that succeeded.

The option `calls` names the scenario. One with INVITE has a called side, which answers beside the callers; the figure
`answered` is the rate of calls that were complete there.

The indicator is the SCR: successful calls per second, over the offered time without its first second, in which calls
are under way and none can have ended.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise, zip_longest
from pathlib import Path

SUBSCRIBERS = 1000
MIN_OFFERED = 0.95
"""Of the asked rate: below it the indicator would be that of the generator, not of the service."""
BEGUN_WITHIN_S = 10.0
DRAINED_WITHIN_S = 2.0
ANSWER_PORT = 5600
ANSWERED = "statistics-answered.csv"
Row = tuple[float, int, int]
"""Seconds since the start, calls that were begun, calls that succeeded."""


def seconds(text: str) -> float:
    """A time of the statistics, hours:minutes:seconds with a part of a second after the last colon or dot."""
    hours, minutes, rest = text.replace(".", ":").split(":", 2)
    whole, _, part = rest.partition(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(f"{whole}.{part or 0}")


def rows(path: Path) -> list[Row]:
    """The statistics so far, one row per second; a row that is being written is left out."""
    if not path.exists():
        return []
    text = path.read_text(encoding="ascii")
    table = csv.DictReader(text[: text.rfind("\n") + 1].splitlines(), delimiter=";")
    return [
        (seconds(row["ElapsedTime(C)"]), int(row["TotalCallCreated"]), int(row["SuccessfulCall(C)"])) for row in table
    ]


def scenario(name: str) -> Path:
    """The file of a scenario."""
    return Path(__file__).with_name(f"{name}.xml")


def start_called(address: str, folder: Path) -> subprocess.Popen[bytes]:
    """The called side of all calls."""
    return subprocess.Popen(
        [
            "sipp", "-sf", str(scenario("answer")), "-i", address, "-p", str(ANSWER_PORT), "-nostdin",
            "-l", "1000000", "-skip_rlimit", "-trace_stat", "-stf", str(folder / ANSWERED), "-fd", "1",
        ],
        cwd=folder, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def start(calls: Path, edge: str, number: int, rate: float, folder: Path) -> subprocess.Popen[bytes]:
    """One generator that offers its part of the rate to one edge."""
    return subprocess.Popen(
        [
            "sipp", f"{edge}:5060", "-sf", str(calls),
            "-key", "answer_port", str(ANSWER_PORT), "-inf", str(folder / "subscribers.csv"),
            "-i", os.environ["CSIT_ADDRESS"], "-p", str(5060 + number),
            # Calls that are still open are no reason to begin fewer.
            "-r", f"{rate:g}", "-l", "1000000", "-skip_rlimit", "-nostdin",
            "-trace_stat", "-stf", str(folder / f"statistics-{number}.csv"), "-fd", "1",
        ],
        cwd=folder, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def until(duration_s: float, statistics: Path, process: subprocess.Popen[bytes]) -> list[Row]:
    """Wait until the statistics cover a time."""
    deadline = time.monotonic() + duration_s + BEGUN_WITHIN_S
    while time.monotonic() < deadline:
        table = rows(statistics)
        if table and table[-1][0] >= duration_s - 0.05:
            return table
        if process.poll() is not None:
            sys.exit(f"the generator ended with {process.returncode} in the middle of the load")
        time.sleep(0.05)
    sys.exit(f"the generator wrote no statistics of {duration_s:g} s in {duration_s + BEGUN_WITHIN_S:g} s")


def rates(table: Sequence[Row]) -> tuple[float, float]:
    """Calls per second that were begun, and that succeeded, without the first second; nothing of less."""
    first = next((row for row in table if row[0] >= 0.95), None)
    if first is None or table[-1][0] <= first[0]:
        return 0.0, 0.0
    span_s = table[-1][0] - first[0]
    return (table[-1][1] - first[1]) / span_s, (table[-1][2] - first[2]) / span_s


def succeeded_each_second(table: Sequence[Row]) -> list[float]:
    """Calls that succeeded per second, of each row of the statistics."""
    return [
        (after[2] - before[2]) / (after[0] - before[0])
        for before, after in pairwise([(0.0, 0, 0), *table])
        if after[0] > before[0]
    ]


def end(process: subprocess.Popen[bytes]) -> None:
    """Let calls that are open come to their end, for a while: what is queued is not the next load's burden."""
    if process.poll() is None:
        process.send_signal(signal.SIGUSR1)
        try:
            process.wait(DRAINED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Offer, read, report."""
    load, duration_s = float(os.environ["CSIT_LOAD"]), float(os.environ["CSIT_DURATION_S"])
    calls = scenario(os.environ["CSIT_OPTION_CALLS"])
    edges, folder = os.environ["CSIT_ADDRESSES_EDGE"].split(), Path(os.environ["CSIT_FOLDER"])
    if duration_s < 2:
        sys.exit(f"calls need at least 2 s, duration_s is {duration_s:g}")
    # The keyword as a whole is a field: it takes no other fields as its arguments.
    users = [
        f"user{number};[authentication username=user{number} password=password{number}]\n"
        for number in range(SUBSCRIBERS)
    ]
    (folder / "subscribers.csv").write_text("SEQUENTIAL\n" + "".join(users), encoding="ascii")
    for old in folder.glob("statistics-*.csv"):
        old.unlink()
    succeeded, begun = 0.0, 0.0
    each_second: list[float] = []
    is_answered = "[answer_port]" in calls.read_text(encoding="utf-8")
    with ExitStack() as processes:
        if is_answered:
            processes.callback(end, start_called(os.environ["CSIT_ADDRESS"], folder))
        started = []
        for number, edge in enumerate(edges):
            process = start(calls, edge, number, load / len(edges), folder)
            processes.callback(end, process)
            started.append(process)
        for number, process in enumerate(started):
            table = until(duration_s, folder / f"statistics-{number}.csv", process)
            new, done = rates(table)
            begun, succeeded = begun + new, succeeded + done
            each_second = [sum(pair) for pair in zip_longest(each_second, succeeded_each_second(table), fillvalue=0.0)]
        answered = rates(rows(folder / ANSWERED))[1]
    if begun < MIN_OFFERED * load:
        sys.exit(f"{begun:.1f} of {load:g} calls/s were offered: the generator is at its limit")
    figures = {"offered": round(begun, 2)} | ({"answered": round(answered, 2)} if is_answered else {})
    seconds = [round(value, 2) for value in each_second]
    print(json.dumps({"indicator": round(succeeded, 2), **figures, "seconds": seconds}))


if __name__ == "__main__":
    main()
