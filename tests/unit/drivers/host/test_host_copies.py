"""Copies by traffic control: what is asked of the kernel, and what is said where it cannot."""

import errno
from collections.abc import Sequence

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import copy_received, make_copies
from resources.libraries.python.errors import CommandFailed, Unsupported
from tests.unit.drivers.host.messages import said


def test_one_rule_sends_everything_to_each_of_the_others_and_lets_it_go_on() -> None:
    watch, copy = copy_received("csv1p1", 100, [("csv1t1", 107), ("csv1t2", 109)])
    assert said(watch.body, tcmsg) == {
        "index": 100, "handle": 0xFFFF0000, "parent": 0xFFFFFFF1, "TCA_KIND": "ingress",
    }  # fmt: skip
    rule = said(copy.body, tcmsg)
    assert (rule["index"], rule["parent"], rule["info"], rule["TCA_KIND"]) == (100, 0xFFFF0000, 0x10300, "u32")
    (key,) = rule["TCA_OPTIONS"]["TCA_U32_SEL"]["keys"]
    assert (key["key_mask"], key["key_val"]) == (0, 0)  # whatever the packet is
    acts = [act for act in rule["TCA_OPTIONS"]["TCA_U32_ACT"].values() if act]
    parameters = [act["TCA_ACT_OPTIONS"]["TCA_MIRRED_PARMS"] for act in acts]
    assert [act["TCA_ACT_KIND"] for act in acts] == ["mirred", "mirred"]
    mirror_to_egress, pipe = 2, 3
    assert [(row["ifindex"], row["eaction"], row["action"]) for row in parameters] == [
        (107, mirror_to_egress, pipe),
        (109, mirror_to_egress, pipe),
    ]
    assert copy.what == "copy what csv1p1 receives to csv1t1, csv1t2"


@pytest.mark.parametrize("status", [errno.ENOENT, errno.EOPNOTSUPP])
def test_a_kernel_without_it_is_reported_in_one_sentence(status: int) -> None:
    def refuse(_: Sequence[Request]) -> None:
        raise CommandFailed(("netlink", "copy"), status, "No such file or directory")

    with pytest.raises(
        Unsupported, match=r"this kernel cannot copy frames .* it lacks sch_ingress, cls_u32 or act_mirr"
    ):
        make_copies(refuse, [])
