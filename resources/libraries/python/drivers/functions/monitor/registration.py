"""Declarations of programs that look at packets as NFs, and memory of Suricata in a virtual machine."""

from resources.libraries.python.model.driver import FunctionDriver, RequiredProgram
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode

SURICATA_LEAST_MB = 64
"""What Suricata adds to the least memory of a guest. Measured: with 1000 rules one of 128 + 64 MB starts and counts,
one of 128 + 32 MB does not answer."""
SURICATA_GUEST_MB = 192
"""What it adds by default: its memory for flows and streams (32 MB), rings for frames of 9000 bytes, and
some to spare."""
_SURICATA_RULE_KB = 8
"""For each rule. Measured: 37 MB of its own with 1000 rules, 71 with 10,000, 297 with 50,000 (Suricata 7.0.10)."""
_WORDS = {
    NfKind.TCPDUMP: ("tcpdump", RequiredProgram("tcpdump", "tcpdump")),
    NfKind.NETSNIFF: ("netsniff", RequiredProgram("netsniff-ng", "netsniff-ng")),
    NfKind.PKTSTAT: ("pktstat", RequiredProgram("pktstat", "pktstat")),
    NfKind.NGREP: ("ngrep", RequiredProgram("ngrep", "ngrep")),
    NfKind.SURICATA: ("suricata", RequiredProgram("suricata", "suricata")),
}


def suricata_mb(dut: DutNode, own_mb: int) -> int:
    """Memory of Suricata with its rules, beside what it has by itself."""
    return own_mb - (-dut.suricata.rules * _SURICATA_RULE_KB // 1024)


DRIVERS = tuple(
    FunctionDriver(
        name=kind.value,
        label=program.name,
        kind=kind,
        word=word,
        factory="resources.libraries.python.drivers.functions.monitor.driver:make",
        missing="resources.libraries.python.drivers.functions.monitor.driver:missing_on",
        programs=(program,),
        on_request=True,
    )
    for kind, (word, program) in _WORDS.items()
)
