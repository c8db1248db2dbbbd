"""Programs that look at packets, in guests."""

from functools import partial

from resources.libraries.python.drivers.functions.monitor.driver import version_of
from resources.libraries.python.drivers.functions.monitor.programs import program_of
from resources.libraries.python.drivers.functions.monitor.registration import SURICATA
from resources.libraries.python.drivers.functions.vm.guest_software import cards
from resources.libraries.python.drivers.functions.vm_application.applications import PLACE, Application
from resources.libraries.python.drivers.functions.vm_application.counters import PacketSockets
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan, TapPlan

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
