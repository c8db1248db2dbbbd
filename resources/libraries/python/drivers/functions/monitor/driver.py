"""Network functions as monitors: a program that receives all packets, beside the routing kernel or alone."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.monitor import SURICATA, Ngrep, Suricata, suricata
from resources.libraries.python.drivers.functions.monitor.suricata import patterns
from resources.libraries.python.drivers.functions.namespace_functions import MERGED, DaemonFunctions, passed_by
from resources.libraries.python.drivers.functions.vm.applications import PLACE, Application, PacketSockets
from resources.libraries.python.drivers.functions.vm.guest_software import cards
from resources.libraries.python.drivers.host.programs.namespace_programs import problems_at_an_end
from resources.libraries.python.drivers.host.programs.program_output import version_of
from resources.libraries.python.drivers.host.sockets import program_sockets
from resources.libraries.python.drivers.host.sockets.program_sockets import PacketSocket
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.testbed.nodes import DutNode

_FOR_EVER_S = 2_000_000_000
_BUFFER_KIB = 4096
"""Of tcpdump's and netsniff's rings; of the others it is the library's 2 MB."""


@dataclass(frozen=True, slots=True)
class MonitorProgram:
    """The program of a monitor, and how it is run."""

    name: str
    does: str
    """With each packet, as a phrase of the facts."""
    argv: Callable[[str, Path], list[str]]
    """The argument vector, for an interface and the folder that is the program's own."""
    version_argument: str
    files: Callable[[str, Path], Mapping[str, str]] = lambda *_: {}
    """Files that it reads from its folder: texts by name, for an interface and that folder."""
    control: str | None = None
    """Name of a socket in its folder, if it reports its own counters there: its packet socket's counters are then
    emptied by two."""
    settles_s: float = 0.0
    """Seconds after its packet socket is open during which it ignores packets."""


def program_of(kind: str, node: DutNode) -> MonitorProgram:
    """Return the program of a kind of NF with the settings of a node."""
    return programs(node.settings(Ngrep).patterns, node.settings(Suricata).rules)[kind]


def programs(pattern_count: int, rule_count: int) -> Mapping[str, MonitorProgram]:
    """All of them.

    `rule_count`: by which Suricata searches it.
    """
    return {
        "tcpdump": MonitorProgram(
            "tcpdump",
            "decodes headers and writes a line for each packet",
            lambda interface, _: ["tcpdump", "-nn", "-v", "-B", str(_BUFFER_KIB), "-i", interface],
            "--version",
        ),
        "netsniff": MonitorProgram(
            "netsniff-ng",
            "keeps each packet as in a file of captures, which is thrown away",
            lambda interface, _: [
                "netsniff-ng", "--in", interface, "--out", "/dev/null", "--silent", "--ring-size",
                f"{_BUFFER_KIB}KiB", "--no-sock-mem", "--no-hwtimestamp",
            ],
            "--version",
        ),
        "pktstat": MonitorProgram(
            "pktstat",
            "adds each packet to its flow",
            # In the mode for one report: else it draws on a terminal, which is not there. The report is never due.
            lambda interface, _: ["pktstat", "-1", "-n", "-w", str(_FOR_EVER_S), "-i", interface],
            "-?",
        ),
        "ngrep": MonitorProgram(
            "ngrep",
            f"searches each payload for {pattern_count} patterns; a stand-in for an intrusion detection system",
            lambda interface, _: ["ngrep", "-q", "-d", interface, "|".join(patterns(pattern_count))],
            "-V",
        ),
        "suricata": MonitorProgram(
            "suricata",
            f"detects intrusions by {rule_count} rules that search each payload, and alerts",
            suricata.argv,
            "-V",
            lambda interface, place: suricata.files(interface, place, rule_count),
            suricata.CONTROL,
            suricata.SETTLES_S,
        ),
    }  # fmt: skip


class Monitors(DaemonFunctions[NfPlan | TapPlan]):
    """NFs that look at packets, inline or passive.

    An inline one looks at its left interface, which packets of both directions pass once.
    """

    _prints = True

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan | TapPlan]) -> None:
        super().__init__(node, context, functions)
        self._program = program_of(functions[0].kind, node)
        self._sockets: dict[str, PacketSocket] = {}
        self._stack = ExitStack()
        self._does, self._version_argument = self._program.does, self._program.version_argument

    def argv(self, function: NfPlan | TapPlan, folder: Path) -> list[str]:
        """Look at its interface, or at the left one."""
        for name, text in self._program.files(_watched(function), folder).items():
            (folder / name).write_text(text, encoding="utf-8")
        return self._program.argv(_watched(function), folder)

    def not_ready(self, function: NfPlan | TapPlan) -> str:
        """Return that it has no packet socket yet; its counters are then ours to read."""
        pid = self._companions.pids()[function.name]
        found = program_sockets.find(pid, _watched(function))
        if found is None:
            return f"it has no packet socket at {_watched(function)}"
        self._stack.callback(found.close)
        self._sockets[function.name] = found
        return ""

    def deliver(self) -> None:
        """Wait until packets are not ignored any more."""
        time.sleep(self._program.settles_s)
        super().deliver()

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Packets that each program got, and that it was too slow for."""
        return {name: self._counted(name, found) for name, found in self._sockets.items()}

    def _counted(self, name: str, own: PacketSocket) -> ProcessedPackets:
        ours = own.read()
        if self._program.control is None:
            return ours
        place = self._companions.folder / name / self._program.control
        return ours + suricata.taken(place, own.interface)

    def problems(self) -> tuple[str, ...]:
        """Programs that have ended or moved, ports without thread or carrier, packets that no program was given."""
        if found := super().problems():
            return found
        try:
            return tuple(self._passed_by())
        except CsitError as error:  # one that counts by itself does not answer
            return problems_at_an_end([self._companions]) or (str(error),)

    def _passed_by(self) -> Iterator[str]:
        processed = self.processed()
        for function in self._functions:
            here = self._fabric.counters([function.name])[_watched(function)]
            passed = here.rx_packets + here.tx_packets
            done = processed[function.name]
            seen = done.packets + (done.dropped or 0)
            # One that is held back by a limit may not have looked at anything yet: that is the limit, and no defect.
            if function.limits.cpu is None and passed_by(seen, passed, merged=MERGED):
                yield f"{passed} packets passed {_watched(function)}, and {self._program.name} was given {seen} of them"

    def stop(self) -> None:
        self.call_off()
        self._sockets = {}
        self._stack.close()
        super().stop()


def _watched(function: NfPlan | TapPlan) -> str:
    return function.left.name if isinstance(function, NfPlan) else function.interface


_SETTLE_TIMES = 4
"""Guests in emulation are slow: so many times as long as a namespace for what cannot be waited for otherwise."""
_SURICATA_NEEDS = ("ssse3", "sse4.1", "sse4.2", "popcnt")
"""Debian's Suricata ends with an illegal instruction without them (measured with SSSE3 alone, 7.0.10)."""


def application(function: NfPlan | TapPlan, node: DutNode, _: int) -> Application:
    """Return the program of an NF."""
    kind = function.kind.in_guest or function.kind
    program, watched = program_of(kind, node), cards(function)[0][0]
    # A line of titles, and one for the program's socket.
    up = '[ "$(wc -l </proc/net/packet)" -gt 1 ]'
    return Application(
        program.does,
        partial(version_of, program.name, program.version_argument),
        argv=tuple(program.argv(watched, PLACE)),
        prints=program.control is None,
        files=program.files(watched, PLACE),
        up=up if program.control is None else f"{up} && [ -S {PLACE / program.control} ]",
        then=f"sleep {_SETTLE_TIMES * program.settles_s:g}" if program.settles_s else "",
        needs=_SURICATA_NEEDS if kind == SURICATA else (),
        counts=PacketSockets if program.control is None else partial(PacketSockets, watched),
    )
