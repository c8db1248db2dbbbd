"""Whether this machine can send by XDP live frames: tried in a network namespace that ends with the attempt."""

import os
from contextlib import closing

from resources.libraries.python.drivers.generators.builtin.counters import Counters, settle
from resources.libraries.python.drivers.generators.builtin.kernel import link_is_up
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError

_PACKETS = 64
_TABLE = "/proc/thread-self/net/dev"
_CARRIER_S = 3.0
_NEAR, _FAR = (f"csx{os.getpid()}a", 100), (f"csx{os.getpid()}b", 101)
_MACS = "02:fe:00:00:00:01", "02:fe:00:00:00:02"


def why_not() -> str | None:
    """Why XDP live frames do not work here, in words; None when 64 of them came through a cable."""
    try:
        return aside(_try)
    except (CsitError, OSError) as error:
        return str(error)


def _try() -> str | None:
    unshare(CLONE_NEWNET)
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with closing(Namespace("the trial namespace", descriptor, Netlink())) as here:
        here.netlink.do([rtnetlink_messages.veth_pair((*_NEAR, _MACS[0]), (*_FAR, _MACS[1]), descriptor, 1500)])
        for name, _ in (_NEAR, _FAR):
            data_threads.receive_by_napi(here.netlink, name)
        here.netlink.do([rtnetlink_messages.set_up(*_NEAR), rtnetlink_messages.set_up(*_FAR)])
        names = (_NEAR[0], _FAR[0])
        wait_until("carrier of a veth pair", lambda: ", ".join(n for n in names if not link_is_up(n)), _CARRIER_S)
        flow = FlowSpec(_NEAR[0], _FAR[0], *_MACS, "10.0.0.1", 2, "20.0.0.1")
        with closing(XdpSender([flow])) as sender, closing(Counters([_FAR[0]], table=_TABLE)) as counters:
            sender.rehearse(_PACKETS)
            (received,) = settle(counters.received, (_PACKETS,)).counts
    return None if received >= _PACKETS else f"of {_PACKETS} XDP frames through a veth pair {received} came"
