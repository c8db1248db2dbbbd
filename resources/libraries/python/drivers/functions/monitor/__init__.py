"""Network functions as monitors: programs that look at all packets of a network namespace."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import Form, FunctionDriver, GuestKind, RequiredProgram, SimulatedNf
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.testbed.nodes import DutNode


class Ngrep(Frozen):
    """Parameters of NFs of kind ngrep."""

    patterns: Annotated[int, Field(ge=1, le=5000)] = 100
    """That each payload is searched for; none is in what our own generators send."""


class Suricata(Frozen):
    """Parameters of NFs of kind suricata."""

    rules: Annotated[int, Field(ge=1, le=50_000)] = 1000
    """By which it searches each payload; nothing that our own generators send has one of their patterns."""


READER = RequiredProgram("perl", "perl")
"""Reads the counters of packet sockets and asks control sockets, for which the busybox of a guest has no means."""
OWN_USER = "tcpdump"
"""User for which the program of this name gives up the rights of root."""
SURICATA = "suricata"
_SURICATA_MIN_MB = 64
"""Memory of Suricata beside a guest's least. Measured: with 1000 rules one of 128 + 64 MB starts and counts,
one of 128 + 32 MB does not answer."""
_SURICATA_GUEST_MB = 192
"""Memory that it adds by default: its memory for flows and streams (32 MB), rings for frames of 9000 bytes, and
some to spare."""
_SURICATA_RULE_KB = 8
"""For each rule. Measured: 37 MB of its own with 1000 rules, 71 with 10,000, 297 with 50,000 (Suricata 7.0.10)."""
_PACKAGE = "resources.libraries.python.drivers.functions.monitor"


def _suricata_mb(own_mb: int, dut: DutNode) -> int:
    """Memory of Suricata with its rules, beside what it has by itself."""
    return own_mb - (-dut.settings(Suricata).rules * _SURICATA_RULE_KB // 1024)


def _monitor(
    name: str, program: RequiredProgram, guest: GuestKind, simulated: SimulatedNf, **options: type[Frozen]
) -> FunctionDriver:
    return FunctionDriver(
        name=name,
        label=program.name,
        word=name,
        form=Form.PROGRAM_BESIDE,
        factory=f"{_PACKAGE}.driver:Monitors",
        programs=(program,),
        on_request=True,
        passive=True,
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        guest=guest,
        options=options,
        simulated=simulated,
    )


def _guest(name: str, program: RequiredProgram) -> GuestKind:
    return GuestKind(name, f"{_PACKAGE}.driver:application", (program, READER))


_PROGRAMS = {
    "tcpdump": RequiredProgram("tcpdump", "tcpdump"),
    "netsniff": RequiredProgram("netsniff-ng", "netsniff-ng"),
    "pktstat": RequiredProgram("pktstat", "pktstat"),
    "ngrep": RequiredProgram("ngrep", "ngrep"),
}
_OPTIONS = {"ngrep": {"ngrep": Ngrep}}
_SEARCHES = SimulatedNf(sensitivity=0.95, half_pressure=0.59, pressure=0.18, cpu_part=0.45)
"""Type III of Zeng et al.; its loss beside types IV and V the paper puts down to CPU time."""
_SIMULATED = {
    "tcpdump": SimulatedNf(half_core_pps=0.35e6, sensitivity=0.92, half_pressure=0.28, pressure=0.33),
    "netsniff": SimulatedNf(half_core_pps=0.4e6, sensitivity=0.90, half_pressure=0.30, pressure=0.30),
    # Type II of Zeng et al.
    "pktstat": SimulatedNf(half_core_pps=0.25e6, sensitivity=0.94, half_pressure=0.26, pressure=0.35),
    "ngrep": replace(_SEARCHES, half_core_pps=0.15e6),
}
_SURICATA = RequiredProgram(
    "suricata", "suricata", fix="apt-get install suricata (on Debian 12: from bookworm-backports)"
)
DRIVERS = (
    *(
        _monitor(name, program, _guest(name, program), _SIMULATED[name], **_OPTIONS.get(name, {}))
        for name, program in _PROGRAMS.items()
    ),
    _monitor(
        SURICATA,
        _SURICATA,
        replace(
            _guest(SURICATA, _SURICATA),
            memory_mb=partial(_suricata_mb, _SURICATA_GUEST_MB),
            least_memory_mb=partial(_suricata_mb, _SURICATA_MIN_MB),
        ),
        replace(_SEARCHES, half_core_pps=0.2e6, memory_mib=320.0),
        suricata=Suricata,
    ),
)
