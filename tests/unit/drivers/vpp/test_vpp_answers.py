"""What counts as done: VPP's command line has no status."""

import pytest

from resources.libraries.python.drivers.vpp.cli import check, check_shown
from resources.libraries.python.errors import CommandFailed


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("create memif socket id 1 filename /tmp/x", ""),
        ("create host-interface name csv1p1", "host-csv1p1"),
        ("create bridge-domain 10 learn 1", "bridge-domain 10"),
        ("create interface vmxnet3 0000:0b:00.0 num-rx-queues 2", "vmxnet3-0/b/0/0"),
        ("create interface virtio 0000:0b:00.0", ""),
        ("create interface rdma host-if csv1p1 name csv1p1 num-rx-queues 2", ""),
        ("create vhost-user socket /tmp/x server", "VirtualEthernet0/0/12"),
        ("create sub-interfaces csv1p1 101", "csv1p1.101"),
        ("exec /run/access-list.cli", ""),
        ("set interface default rx-mode interrupt", "Default interface rx-mode set to interrupt"),
        ("set interface state csv1p1 up", ""),
        ("pipe create instance 0", "pipe0"),
        ("ipsec itf create instance 1", "ipsec1"),
    ],
)
def test_what_was_done(command: str, reply: str) -> None:
    check(command, reply)


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("set interface l2 bridge nope 10", "set interface l2 bridge: unknown interface `nope 10'"),
        ("create host-interface name nope", "create host-interface: No such device (errno 19)"),
        ("create bridge-domain 10", "create bridge-domain: bridge domain already exists"),
        ("create interface vmxnet3 0000:0b:00.0", "create interface vmxnet3: device does not support multiple queues"),
        ("create interface memif id 0", "create interface memif: interface already exists"),
        ("ip route add 10.0.0.0/8 via 1.1.1.1 nope", "ip route: parse error: 'nope'"),
        ("create host-interface name csv1p1", ""),
    ],
)
def test_what_was_not_done(command: str, reply: str) -> None:
    with pytest.raises(CommandFailed) as failed:
        check(command, reply)
    assert command in str(failed.value)
    assert reply in str(failed.value)


def test_what_is_not_known_cannot_be_shown() -> None:
    with pytest.raises(CommandFailed, match="show foo was refused: show: unknown input `foo'"):
        check_shown("show foo", "show: unknown input `foo'")
    check_shown("show errors", "   Count   Node  Reason\n  3  x-tx  unknown interface type  error")


def test_keys_are_in_no_message() -> None:
    command = f"ipsec sa add 10 spi 4097 esp crypto-alg aes-gcm-128 crypto-key {'0a' * 16} salt 0x01020304 use-esn"
    reply = f"ipsec sa: parse error: 'crypto-key {'0a' * 16} salt 0x01020304'"
    with pytest.raises(
        CommandFailed, match=r"crypto-key \*\*\* salt \*\*\* use-esn was refused: .*parse error"
    ) as failed:
        check(command, reply)
    said = f"{failed.value!r} {failed.value.whole} {failed.value.argv} {failed.value.stderr}"
    assert "0a0a" not in said and "01020304" not in said
