"""The vSwitch's configuration as commands. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.libraries.python.drivers.vpp.interfaces import VppInterface
from resources.libraries.python.drivers.vpp.templates import commands
from resources.libraries.python.model.plan import Segment


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    tagged: bool


def bridging(segments: Sequence[Segment], interfaces: Sequence[VppInterface]) -> tuple[str, ...]:
    """Join ports to segments and bring them up.

    Args:
        segments: Those whose members are ports of these interfaces.
        interfaces: Made and named already.
    """
    members: Mapping[str, _Member] = {
        port: _Member(each.name_of(vlan), vlan is not None) for each in interfaces for port, vlan in each.ports
    }
    parents = [each.name for each in interfaces]
    tagged = [member.name for member in members.values() if member.tagged]
    return commands(
        "vpp-switch.j2",
        {
            "segments": [[members[name] for name in segment.members] for segment in segments],
            "names": [*parents, *tagged],
        },
    )
