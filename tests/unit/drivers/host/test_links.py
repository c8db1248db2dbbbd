"""What netlink requests say, as pyroute2 reads them and the other way round; limits of links; a namespace's sysfs."""

import errno
import os
import re
from contextlib import nullcontext
from typing import Any

import pytest
from pyroute2.netlink import nlmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ifstatsmsg import ifstatsmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.host.links import link_devices, namespace_syscalls, namespaces
from resources.libraries.python.drivers.host.links import rtnetlink_messages as messages
from resources.libraries.python.drivers.host.links.link_devices import at_arrival
from resources.libraries.python.drivers.host.links.netlink import HEADER_BYTES, Request
from resources.libraries.python.drivers.host.links.rate_limits import limit, network_limits
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import make_copies
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import Limits, NfKind
from tests.builders import plan_of, raising
from tests.unit.drivers.sim.sim_bed import TOPOLOGY


def said(body: bytes, kind: type[nlmsg]) -> dict[str, Any]:
    """A body read again: fields and attributes that say something, nested ones by name."""
    length = (HEADER_BYTES + len(body)).to_bytes(4, "little")
    message = kind(length + bytes(HEADER_BYTES - len(length)) + body)
    message.decode()
    fields = spoken(message)
    del fields["header"]
    fields.pop("state", None) if kind is ifinfmsg else None  # a word that pyroute2 makes of the flags
    return fields


def spoken(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = {key: field for key, field in value.items() if key != "attrs" and field}
    return fields | {row[0]: spoken(row[1]) for row in value.get("attrs", ())}


NEW_QDISC, NEW_LINK, NEW_ADDRESS, NEW_NEIGHBOUR, NEW_ROUTE = ((number, 0x600) for number in (36, 16, 20, 28, 24))
SET_LINK, CHANGE_LINKS, DELETE_LINKS = (19, 0), (16, 0), (17, 0)
"""Numbers and flags of messages (include/uapi/linux/rtnetlink.h)."""
UP = {"flags": 1, "change": 1}


def port(name: str, index: int, mac: str) -> dict[str, Any]:
    return {
        "index": index, "IFLA_IFNAME": name, "IFLA_ADDRESS": mac, "IFLA_MTU": 9000, "IFLA_GROUP": 0xC51,
        "IFLA_NUM_TX_QUEUES": 1, "IFLA_NUM_RX_QUEUES": 1,
    }  # fmt: skip


def info(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"IFLA_LINKINFO": {"IFLA_INFO_KIND": kind, "IFLA_INFO_DATA": data}}


NEAR, FAR = ("csv1p1", 100, "02:01:00:00:01:01"), ("csg1p1", 101, "06:00:00:00:01:01")
VLAN = {key: value for key, value in port("csv2p1", 0, NEAR[2]).items() if key != "index"}
BRIDGE = {"IFLA_BR_AGEING_TIME": 7 * 24 * 3600 * 100, "IFLA_BR_STP_STATE": 0, "IFLA_BR_MCAST_SNOOPING": 0}


@pytest.mark.parametrize(
    ("request_", "number_and_flags", "kind", "wanted"),
    [
        (link_devices.drop_tail("csg0p1", 9), NEW_QDISC, tcmsg,
         {"index": 9, "parent": 0xFFFFFFFF, "TCA_KIND": "pfifo", "TCA_OPTIONS": {"limit": 1000}}),
        (messages.vlan_device("csv2p1", 9, 102, NEAR[2], 9000), NEW_LINK, ifinfmsg,
         VLAN | {"IFLA_GROUP": 0xC52, "IFLA_LINK": 9, **info("vlan", {"IFLA_VLAN_ID": 102})}),
        (messages.veth_pair(NEAR, FAR, 7, 9000), NEW_LINK, ifinfmsg,
         port(*NEAR) | info("veth", {"VETH_INFO_PEER": port(*FAR) | {"IFLA_NET_NS_FD": 7}})),
        (messages.bridge("csb1x1", 5), NEW_LINK, ifinfmsg,
         {"index": 5, **UP, "IFLA_IFNAME": "csb1x1", **info("bridge", BRIDGE)}),
        (messages.set_up("csv1p1", 9), SET_LINK, ifinfmsg, {"index": 9, **UP}),
        (messages.enslave("csv1p1", 9, "csb1x1", 5), SET_LINK, ifinfmsg, {"index": 9, "IFLA_MASTER": 5}),
        (messages.set_ports_up(), CHANGE_LINKS, ifinfmsg, {**UP, "IFLA_GROUP": 0xC51}),
        (messages.delete_ports(), DELETE_LINKS, ifinfmsg, {"IFLA_GROUP": 0xC51}),
        (messages.add_address("if", 9, "100.64.0.2/30"), NEW_ADDRESS, ifaddrmsg,
         {"family": 2, "prefixlen": 30, "index": 9, "IFA_LOCAL": "100.64.0.2", "IFA_ADDRESS": "100.64.0.2"}),
        (messages.add_neighbour("if", 9, "100.64.0.1", "02:00:00:00:01:01"), NEW_NEIGHBOUR, ndmsg,
         {"family": 2, "ifindex": 9, "state": 0x80, "NDA_DST": "100.64.0.1", "NDA_LLADDR": "02:00:00:00:01:01"}),
        (messages.add_route("if", 9, "10.1.0.0/16", "100.64.0.1"), NEW_ROUTE, rtmsg,
         {"family": 2, "dst_len": 16, "table": 254, "proto": 4, "type": 1,
          "RTA_DST": "10.1.0.0", "RTA_GATEWAY": "100.64.0.1", "RTA_OIF": 9}),
    ],
    ids=lambda value: value.what if isinstance(value, Request) else "",
)  # fmt: skip
def test_a_request_says_what_it_is_for(
    request_: Request, number_and_flags: tuple[int, int], kind: type[nlmsg], wanted: dict[str, Any]
) -> None:
    assert (request_.kind, request_.flags) == number_and_flags
    assert said(request_.body, kind) == wanted


def written(kind: type[nlmsg], fields: dict[str, int], attrs: list[tuple[str, Any]]) -> bytes:
    """A row of a dump as pyroute2 writes it."""
    message = kind()
    message.update(fields)
    message["attrs"] = attrs
    message.encode()
    return bytes(message.data[HEADER_BYTES:])


def test_counters_are_read_past_what_precedes_them() -> None:
    table = {"rx_packets": 10, "tx_packets": 11, "rx_bytes": 12, "rx_dropped": 16, "tx_dropped": 17, "multicast": 18}
    row = written(ifstatsmsg, {"ifindex": 42}, [("IFLA_STATS_AF_SPEC", "01:02"), ("IFLA_STATS_LINK_64", table)])
    assert said(messages.GET_COUNTERS, ifstatsmsg) == {"filter_mask": 1}, "no more than is read"
    index, counters = messages.read_counters(row)
    assert index == 42
    assert (counters.rx_packets, counters.tx_packets, counters.rx_dropped, counters.tx_dropped) == (10, 11, 16, 17)


@pytest.mark.parametrize(("flags", "running"), [(0x1043, True), (0x1003, False)])
def test_running_is_read_from_the_flags(flags: int, running: bool) -> None:
    row = written(ifinfmsg, {"index": 7, "ifi_type": 1, "flags": flags}, [("IFLA_IFNAME", "csv1p1")])
    assert messages.read_running(row) == (7, running)
    assert said(messages.GET_LINKS, ifinfmsg) == {"IFLA_EXT_MASK": 8}, "no more than is read"


@pytest.mark.parametrize(
    ("others", "verdict"), [([("csv1t1", 107), ("csv1t2", 109)], "copy"), ([("tap1", 7)], "redirect")]
)
def test_one_rule_sends_everything_to_others_and_copies_go_on(others: list[tuple[str, int]], verdict: str) -> None:
    watch, copy = at_arrival("csv1p1", 100, others, copies=verdict == "copy")
    assert said(watch.body, tcmsg) == {
        "index": 100, "handle": 0xFFFF0000, "parent": 0xFFFFFFF1, "TCA_KIND": "ingress",
    }  # fmt: skip
    rule = said(copy.body, tcmsg)
    assert (rule["index"], rule["parent"], rule["info"], rule["TCA_KIND"]) == (100, 0xFFFF0000, 0x10300, "u32")
    matches = rule["TCA_OPTIONS"]["TCA_U32_SEL"]
    assert "keys" not in matches and matches["flags"] == 1  # whatever the packet is
    acts = [act for act in rule["TCA_OPTIONS"]["TCA_U32_ACT"].values() if act]
    parameters = [act["TCA_ACT_OPTIONS"]["TCA_MIRRED_PARMS"] for act in acts]
    assert {act["TCA_ACT_KIND"] for act in acts} == {"mirred"}
    mirror_to_egress, redirect_to_egress, pipe, stolen = 2, 1, 3, 4
    action = (mirror_to_egress, pipe) if verdict == "copy" else (redirect_to_egress, stolen)
    assert [(row["ifindex"], row["eaction"], row["action"]) for row in parameters] == [
        (index, *action) for _, index in others
    ]
    assert copy.what == f"{verdict} what csv1p1 receives to {', '.join(name for name, _ in others)}"


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
