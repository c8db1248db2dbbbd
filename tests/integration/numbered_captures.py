"""Packets that tcpdump captures beside a trial, and numbered ones against the losses that the generator reports."""

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.measurements.trial import Direction, FlowLosses
from tests.captures import packets_of

_BLOCK_S = 1.3
"""The kernel hands a block that is not full over to tcpdump after 1 s."""


@contextmanager
def arriving(
    interface: str, file: Path, packets: str, *, namespace: str = "csit-generator", options: Sequence[str] = ()
) -> Iterator[Callable[[int], None]]:
    """Have tcpdump write packets that come in into a file at once; gives what waits until it has so many of them."""

    def wait(count: int) -> None:
        wait_until("packets in the file", lambda: "" if len(packets_of(file)) >= count else "fewer", 60.0)

    argv = ["ip", "netns", "exec", namespace, "tcpdump", "-i", interface, "-Q", "in", "-B", "262144", "-w", str(file)]
    argv += ["--immediate-mode", "-U", "-Z", "root", *options, packets]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("listening on" in line for line in process.stderr)
        try:
            yield wait
        finally:
            process.terminate()
        said = process.stderr.read()
    assert "\n0 packets dropped by kernel" in said, said


@contextmanager
def dumped(
    interface: str, file: Path, namespace: str, *, way: str = "inout", packets: str = "udp port 49190"
) -> Iterator[None]:
    """Have tcpdump write packets of an interface into a file, and see that it missed none."""
    argv = ("tcpdump", "-i", interface, "-Q", way, "-n", "-s", "96", "-B", "65536", "-Z", "root", "-w", str(file))
    command = ("nsenter", f"--net={Path('/run/netns') / namespace}", *argv, packets)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        while "listening on" not in said:
            assert said, "tcpdump does not start"
            said = process.stderr.readline()
        yield
        time.sleep(_BLOCK_S)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert re.search(r"^0 packets dropped by kernel", said, re.M), said


def numbers_in(file: Path, network: int) -> list[int]:
    """Numbers of the packets whose source address begins with `network`, in the order in which tcpdump saw them."""
    argv = ("tcpdump", "-r", str(file), "-n", "-xx", f"src net {network}.0.0.0/8")
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    dumps: list[list[str]] = []
    for line in text.splitlines():
        if found := re.match(r"\t0x[0-9a-f]{4}:  (.+)", line):
            dumps[-1].append(found[1].replace(" ", ""))
        elif line.strip():
            dumps.append([])
    return [int("".join(dump)[92:100], 16) for dump in dumps]


@dataclass(frozen=True)
class Seen:
    """A direction according to tcpdump."""

    sent: list[int]
    arrived: list[int]

    def agrees_with(self, flow: FlowLosses) -> None:
        assert self.sent == list(range(flow.sent))
        assert flow.received == len(set(self.arrived))
        assert flow.duplicates == len(self.arrived) - len(set(self.arrived))
        gone = sorted(set(self.sent) - set(self.arrived))
        runs = Counter[int]()
        length = 0
        for number in gone:
            length += 1
            if number + 1 not in gone:
                runs[length] += 1
                length = 0
        assert dict(flow.run_lengths) == runs and flow.longest == max(runs, default=0)
        late, highest, first = 0, -1, list(dict.fromkeys(self.arrived))
        for number in first:
            late += number < highest
            highest = max(highest, number)
        assert flow.order.unknown is None and flow.order.reordered == late


def seen_at(left: Path, right: Path) -> dict[Direction, Seen]:
    """What was captured where the generator's two cables end."""
    return {
        Direction.FORWARD: Seen(numbers_in(left, 10), numbers_in(right, 10)),
        Direction.REVERSE: Seen(numbers_in(right, 20), numbers_in(left, 20)),
    }
