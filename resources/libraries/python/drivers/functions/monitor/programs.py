"""Programs that look at packets, as they are run here: none has a terminal, and each counts in its own way. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.functions.monitor import suricata
from resources.libraries.python.drivers.functions.monitor.registration import Ngrep, Suricata
from resources.libraries.python.drivers.functions.monitor.suricata import patterns
from resources.libraries.python.model.nodes import DutNode

_FOR_EVER_S = 2_000_000_000
_BUFFER_KIB = 4096
"""Of tcpdump's and netsniff's rings; of the others it is the library's 2 MB."""


@dataclass(frozen=True, slots=True)
class MonitorProgram:
    """MonitorProgram of a monitor, and how it is run."""

    name: str
    """What is run."""
    package: str
    """Of Debian, that has it."""
    does: str
    """With each packet; for a person."""
    argv: Callable[[str, Path], list[str]]
    """The argument vector, for an interface and the folder that is the program's own."""
    version_argument: str
    """Argument that prints its version."""
    files: Callable[[str, Path], Mapping[str, str]] = lambda *_: {}
    """What it reads from its folder: texts by name, for an interface and that folder."""
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

    Args:
        pattern_count: What ngrep searches the payload for.
        rule_count: By which Suricata searches it.
    """
    return {
        "tcpdump": MonitorProgram(
            "tcpdump",
            "tcpdump",
            "decodes headers and writes a line for each packet",
            lambda interface, _: ["tcpdump", "-nn", "-v", "-B", str(_BUFFER_KIB), "-i", interface],
            "--version",
        ),
        "netsniff": MonitorProgram(
            "netsniff-ng",
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
            "pktstat",
            "adds each packet to its flow",
            # In the mode for one report: else it draws on a terminal, which is not there. The report is never due.
            lambda interface, _: ["pktstat", "-1", "-n", "-w", str(_FOR_EVER_S), "-i", interface],
            "-?",
        ),
        "ngrep": MonitorProgram(
            "ngrep",
            "ngrep",
            f"searches each payload for {pattern_count} patterns; a stand-in for an intrusion detection system",
            lambda interface, _: ["ngrep", "-q", "-d", interface, "|".join(patterns(pattern_count))],
            "-V",
        ),
        "suricata": MonitorProgram(
            "suricata",
            "suricata (on Debian 12: from bookworm-backports)",
            f"detects intrusions by {rule_count} rules that search each payload, and alerts",
            suricata.argv,
            "-V",
            lambda interface, place: suricata.files(interface, place, rule_count),
            suricata.CONTROL,
            suricata.SETTLES_S,
        ),
    }  # fmt: skip
