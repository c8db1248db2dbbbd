"""Ports that went away, with a machine that was reset, and the order in which settings of a port are restored."""

import errno
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool, nic_adoption
from resources.libraries.python.drivers.host.nics.ethtool import Channels
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort, give_back, take
from resources.libraries.python.drivers.host.nics.port_inventory import Device
from resources.libraries.python.errors import CommandFailed, CsitError, SystemBroken
from tests.unit.drivers.host.adopted_ports import GONE


def test_a_port_that_went_away_is_a_broken_system_and_no_defect() -> None:
    nowhere = cast(Namespace, None)  # it does not come as far as that
    with (
        closing(Netlink()) as home,
        pytest.raises(SystemBroken, match=r"^port nosuchport went away while it was taken"),
    ):
        take(GONE, home, nowhere, "02:00:00:00:00:02", 1500, promiscuous=False)


def test_ring_sizes_and_coalescing_are_set_back_after_the_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some drivers make queues with interrupts of their defaults when the number of queues changes."""
    recorded = GONE.model_copy(
        update={"rx_queues": 0, "tx_queues": 0, "combined_queues": 4, "parameters": {"ring sizes": (512, 0, 0, 512)}}
    )
    port, notes = AdoptedPort.model_validate_json(recorded.model_dump_json()), list[object]()
    monkeypatch.setattr(ethtool, "channels", lambda *_: Channels(0, 0, 1, 0, 0, 8, 0))
    monkeypatch.setattr(ethtool, "set_channels", lambda _, __, wanted: notes.append(wanted.combined))
    monkeypatch.setattr(ethtool, "restore_parameters", lambda _, __, before: notes.append(before))
    for name in ("set_offload", "lro", "set_lro"):
        monkeypatch.setattr(ethtool, name, lambda *_, **__: False)
    netlink = cast(Netlink, SimpleNamespace(socket=None, do=lambda _: None))
    nic_adoption._restore(port, netlink, cast(Device, SimpleNamespace(name="csg1p1", index=7)), tmp_path)
    assert notes == [4, {"ring sizes": (512, 0, 0, 512)}]


@pytest.mark.parametrize("status", [errno.ENODEV, errno.EBUSY])
def test_a_port_that_goes_away_while_it_is_given_back_is_gone(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """Its peer may be removed between the moment it is found and the moment it is set down."""
    answers: list[CsitError | list[str]] = [
        CommandFailed(["netlink", "bring", "csg1p1", "down"], status, "No such device"),
        ["port nosuchport is not on this machine any more"],
    ]

    def answer(port: AdoptedPort) -> list[str]:
        assert port is GONE
        if isinstance(found := answers.pop(0), CsitError):
            raise found
        return found

    monkeypatch.setattr(nic_adoption, "_give_back", answer)
    if status == errno.ENODEV:
        assert give_back([GONE]) == ["port nosuchport is not on this machine any more"]
    else:
        with pytest.raises(CsitError, match=r"^port nosuchport cannot be given back: netlink bring csg1p1 down"):
            give_back([GONE])
