"""Counters of links as the kernel writes them, limits of links, and a namespace's sysfs."""

import errno
import os
import re
from contextlib import nullcontext

import pytest
from pyroute2.netlink.rtnl.ifstatsmsg import ifstatsmsg

from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.functions.nftables.program import limit, network_limits
from resources.libraries.python.drivers.host.links import namespace_syscalls, namespaces
from resources.libraries.python.drivers.host.links import rtnetlink_messages as messages
from resources.libraries.python.drivers.host.links.netlink import HEADER_BYTES
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import make_copies
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import Limits, NfKind
from tests.builders import plan_of, raising
from tests.unit.drivers.sim.sim_bed import TOPOLOGY


def test_counters_are_read_past_what_precedes_them() -> None:
    """A row of a dump as pyroute2 writes it."""
    table = {"rx_packets": 10, "tx_packets": 11, "rx_bytes": 12, "rx_dropped": 16, "tx_dropped": 17, "multicast": 18}
    message = ifstatsmsg()
    message.update({"ifindex": 42, "attrs": [("IFLA_STATS_AF_SPEC", "01:02"), ("IFLA_STATS_LINK_64", table)]})
    message.encode()
    index, counters = messages.read_counters(bytes(message.data[HEADER_BYTES:]))
    assert index == 42
    assert (counters.rx_packets, counters.tx_packets, counters.rx_dropped, counters.tx_dropped) == (10, 11, 16, 17)


@pytest.mark.parametrize("status", [errno.ENOENT, errno.EOPNOTSUPP])
def test_a_kernel_without_it_is_reported_in_one_sentence(status: int) -> None:
    refuse = raising(CommandFailed(("netlink", "copy"), status, "No such file or directory"))
    with pytest.raises(Unsupported, match=r"cannot copy frames .* it lacks sch_ingress, cls_u32 or act_mirr"):
        make_copies(refuse, [])


def plan(*rates_pps: float | None) -> Plan:
    limits = tuple(Limits(network_pps=rate) for rate in rates_pps)
    kinds = (NfKind("linux_router"),) * len(limits)
    return plan_of(TOPOLOGY, "CSC", len(limits), 1, TOPOLOGY.dut.layout, instance_kinds=kinds, limits=limits)


def buckets(asked: Plan) -> dict[str, dict[str, tuple[int, int]]]:
    """Rate and size of each bucket by owner and port."""
    rule = (
        r'chain (\S+) \{ type filter hook egress device "\1" .* limit rate over (\d+)/second burst (\d+) packets drop'
    )
    found = network_limits(asked.links, asked.functions)
    return {
        owner: {name: (int(rate), int(burst)) for name, rate, burst in re.findall(rule, text)}
        for owner, text in found.items()
    }


def test_both_ports_that_send_to_a_limited_nf_have_a_bucket_of_ten_milliseconds() -> None:
    asked = plan(None, 50_000.4)
    both = [(link.a, link.b) for link in asked.links if "nf-2-1" in (link.a.owner, link.b.owner)]
    peers = {near if far.owner == "nf-2-1" else far for near, far in both}
    assert len(peers) == 2
    assert buckets(asked) == {"vswitch": {port.interface: (50_000, 500) for port in peers}}
    assert set(buckets(plan(0.3, 20.0))["vswitch"].values()) == {(1, 16), (20, 16)}, "a handful passes at once"
    assert buckets(plan(None, None)) == {}


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Unsupported("nft missing for NFs of kind linux_nat"), "nft missing for limits of the network; install it"),
        (CommandFailed(("nft",), 1, "Not supported"), "this kernel cannot limit what a port sends"),
    ],
)
def test_what_a_limit_lacks_is_reported(failure: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load", raising(failure))
    with pytest.raises(Unsupported, match=f"^{said}"):
        limit("table netdev x {}")


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("code", [errno.EBUSY, errno.EPERM])
def test_the_sysfs_that_is_there_already_is_used_and_another_error_is_named(
    code: int, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any namespace can be entered."""
    for module, name in ((namespaces, "enter"), (namespaces, "own_mounts"), (namespace_syscalls, "setns")):
        monkeypatch.setattr(module, name, lambda *_: None)
    refuse = raising(OSError(code, os.strerror(code)))
    for module, name in ((namespaces, "mount"), (namespace_syscalls, "mount"), (namespace_syscalls, "unmount")):
        monkeypatch.setattr(module, name, refuse)
    reason = r"^sysfs cannot be mounted for csit-vswitch: Operation not permitted$"
    with nullcontext() if code == errno.EBUSY else pytest.raises(Unsupported, match=reason):
        if in_place:
            with namespace_syscalls.sysfs_of(0, "csit-vswitch"):
                pass
        else:
            assert namespaces.run_inside("csit-vswitch", lambda: "done", sysfs=True) == "done"
