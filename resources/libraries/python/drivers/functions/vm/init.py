"""Guest side: the program that its kernel starts, and the words on the kernel's command line that it reads."""

from collections.abc import Sequence

from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.rendering import render

READY = "CSIT-GUEST-READY"
"""The line on the console that says that a guest routes."""
PROBE = "csit.probe"
"""On the command line of a guest that is to end as soon as it is ready."""
QUIET = (
    "console=ttyS0",
    "quiet",
    # A panic ends the guest, with its reason on the console, where it would otherwise stand still.
    "panic=-1",
    # A guest that gets no CPU during an overload is no fault of its kernel.
    "nowatchdog",
    # The kernel counts ticks of the timer while it boots, and panics where a busy host gave it no CPU for them.
    "no_timer_check",
    # Neighbour discovery and MLD packets would be counted as test traffic.
    "ipv6.disable=1",
)
"""On every guest's kernel command line."""
_NOTHING = ("-", "-", "-", "-")
"""In the place of address, prefix, hop and its MAC."""


def render_init(modules: Sequence[str]) -> str:
    """The init script of an image, the same for all guests.

    `modules`: Names of the kernel modules in `/modules`, in the order of loading.
    """
    return render("guest-init.sh.j2", {"modules": list(modules), "ready": READY, "probe": PROBE})


def command_line(function: NfPlan | TapPlan, mtu: int, vcpus: Sequence[Sequence[int]]) -> str:
    """Return the kernel command line of a guest: its whole configuration.

    `function`: Has addresses, routes and neighbours of both ports; a passive NF has one port without any.
    `mtu`: Of the ports, in bytes.
    `vcpus`: The vCPU that receives from each queue of the left port, and those of the right one; or of the only one.
    """
    if isinstance(function, TapPlan):
        ports = [(function.interface, function.mac, *_NOTHING)]
    else:
        ports = [
            (side.name, side.mac, side.address, "+".join((hop.prefix, *hop.also)), hop.address, hop.mac)
            for side in (function.left, function.right)
            for hop in (side.route,)
        ]
    rows = ((*port, str(mtu), ":".join(map(str, queues))) for port, queues in zip(ports, vcpus, strict=True))
    return " ".join([*QUIET, *(f"csit.port={','.join(row)}" for row in rows)])


def probe_command_line() -> str:
    """The same of a guest without ports that ends as soon as it is ready."""
    return " ".join([*QUIET, PROBE])
