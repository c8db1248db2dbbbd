"""Events of NFs that are routers of the kernel: a network namespace is what is hit."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.programs.disturbances import MOVED, Steps, refused
from resources.libraries.python.model.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan

_FORWARDING = (Path("/proc/sys/net/ipv4/ip_forward"), Path("/proc/sys/net/ipv6/conf/all/forwarding"))


def router_steps(
    event: PartEvent, row: Sequence[NfPlan], fabric: Fabric, reload: Callable[[], object] | None = None
) -> Steps:
    """What an event consists of.

    Args:
        event: What happens.
        row: The NF; one that instances share has a row for each.
        fabric: Has its ports.
        reload: Loads its rules anew; None for one that has none.

    Raises:
        Unsupported: It cannot happen to a router.
    """
    name = row[0].name
    down, up = partial(fabric.take_down, name), partial(_bring_back, row, fabric)
    if event is PartEvent.KILL:
        return Steps("ports down, routes gone", down)
    if event is PartEvent.RESTART:
        return Steps("ports down, then up with routes and data threads", down, up)
    if event is PartEvent.ADD:
        return Steps("ports up with routes and data threads", up, before=down)
    if event is PartEvent.PAUSE:
        switch = partial(_forward, fabric, name, _FORWARDING[":" in row[0].left.address])
        return Steps("IP forwarding off, then on; packets are dropped", partial(switch, "0"), partial(switch, "1"))
    if event is PartEvent.MOVE:
        return move_steps(fabric, name)
    if reload is None:
        raise refused(event, f"{name} ({row[0].kind})")
    return Steps("rules replaced in one transaction", reload)


def _bring_back(row: Sequence[NfPlan], fabric: Fabric) -> None:
    fabric.bring_back(row[0].name)
    configure_routers(row, fabric, addresses=False)


def _forward(fabric: Fabric, name: str, switch: Path, value: str) -> None:
    fabric.run_inside(name, partial(switch.write_text, value, encoding="ascii"))


def move_steps(fabric: Fabric, owner: str) -> Steps:
    """Return how the data threads of an owner's ports are moved."""
    return Steps(MOVED, partial(fabric.move_threads, owner))
