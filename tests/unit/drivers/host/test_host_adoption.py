"""Taking a port that is there no more: its other end was on a machine that has just been reset."""

from contextlib import closing
from typing import cast

import pytest

from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort, take
from resources.libraries.python.errors import SystemBroken

GONE = AdoptedPort(
    interface="csg1p1", inside="csit-generator", device="nosuchport", home=1, bus="", mac="02:00:00:00:00:01", mtu=1500,
    up=True, promiscuous=False, gro=True, tso=True, lro=False, threaded=None, rx_queues=None, tx_queues=None,
    combined_queues=None,
)  # fmt: skip


def test_a_port_that_went_away_is_a_broken_system_and_no_defect() -> None:
    nowhere = cast(Namespace, None)  # it does not come as far as that
    with (
        closing(Netlink()) as home,
        pytest.raises(SystemBroken, match=r"^port nosuchport went away while it was taken"),
    ):
        take(GONE, home, nowhere, "02:00:00:00:00:02", 1500, promiscuous=False)
