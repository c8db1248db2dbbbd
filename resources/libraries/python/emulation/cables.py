"""Cables of ports with several receive queues: pairs of tap devices that the kernel joins.

They are in a network namespace without a name, which exists as long as a machine holds a tap device. So nothing is left
of them when the machines have ended.
"""

from collections.abc import Iterable

from resources.libraries.python.drivers.functions.vm.taps import TapDevice, bring_up, close_taps, join, open_taps
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.errors import Unsupported

_MTU = 9500
"""As the largest frames that suites send, and more."""


def open_cables(names: Iterable[str], queues: int) -> dict[tuple[str, int], TapDevice]:
    """Make cables.

    Args:
        names: Of the cables.
        queues: That each port has.

    Returns:
        Tap devices by name of the cable and end, 0 or 1, for the caller to close once the machines have them.

    Raises:
        Unsupported: This system has no tap devices, or this user may not make them.
    """
    cables = tuple(names)

    def make() -> dict[tuple[str, int], TapDevice]:
        try:
            unshare(CLONE_NEWNET)
        except PermissionError as error:
            raise Unsupported("ports with several queues are on tap devices, which takes root") from error
        ends = [(name, end) for name in cables for end in (0, 1)]
        devices = [f"end{number}" for number in range(len(ends))]
        taps = dict(zip(ends, open_taps(devices, queues, offloads=False), strict=True))
        netlink = Netlink()
        try:
            for name in cables:
                near, far = taps[name, 0], taps[name, 1]
                netlink.do([*join(near, (far.name, far.index), _MTU), bring_up(far, _MTU)])
        except BaseException:
            close_taps(taps.values())
            raise
        finally:
            netlink.close()
        return taps

    return aside(make)
