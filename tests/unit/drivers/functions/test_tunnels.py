"""Tunnels as NFs without a machine: configuration of the ends, keys, routes, counters, missing programs, leftovers."""

import re
import stat
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.functions import tunnels
from resources.libraries.python.drivers.functions.ipsec import driver as ipsec
from resources.libraries.python.drivers.functions.openvpn import driver as openvpn
from resources.libraries.python.drivers.functions.openvpn.driver import CIPHER, ENDS, LEFT, RIGHT, TunnelFiles
from resources.libraries.python.drivers.functions.tunnels import TunnelCounters, TunnelEnd, Tunnels, into, passed
from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.functions.wireguard.driver import ask, ends_of, make_keys, settings
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.kinds.machine import missing, missing_for_some
from tests.builders import shell_program, shipped
from tests.unit.planning.polled_ports import together

DEVICES = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo:    9       9    0    0    0     0          0         0        9       9    0    0    0     0       0          0
tun-left:  840    10    0    5    0     0          0         0     1680      20    0    3    0     0       0          0
tun-right: 1512   18    0    0    0     0          0         0      924      11    0    1    0     0       0          0
"""
NOTHING = cast(Any, SimpleNamespace())
"""Fails on any use."""
CONTEXT = cast(Any, SimpleNamespace(fabric=NOTHING, lock=NOTHING, companions=lambda *_, **__: NOTHING))


def program(folder: Path, name: str, text: str) -> str:
    return str(shell_program(folder / name, text))


def told(end: TunnelEnd, mtu: int = 1500) -> list[str]:
    return openvpn.configuration(end, TunnelFiles("/run/c.pem", "/run/k.pem", "AA:BB"), mtu).splitlines()


def test_the_ends_of_an_openvpn_tunnel_are_each_others_peers_and_pass_packets_as_they_are() -> None:
    left, right = told(LEFT), told(RIGHT)
    assert {"dev tun-left", "lport 1194", "remote 127.0.0.1 1195", "tls-server", "dh none"} <= set(left)
    assert {"dev tun-right", "lport 1195", "remote 127.0.0.1 1194", "tls-client"} <= set(right)
    for lines in (left, right):
        assert {"local 127.0.0.1", "mssfix 0", f"data-ciphers {CIPHER}", "disable-dco", "reneg-sec 0"} <= set(lines)
        assert {'cert "/run/c.pem"', 'key "/run/k.pem"', "peer-fingerprint AA:BB"} <= set(lines)
        assert not [line for line in lines if line.startswith(("fragment", "comp", "ifconfig"))]
    assert "tun-mtu 1500" in left
    assert "tun-mtu 8982" in told(RIGHT, 8982)


def test_the_ends_of_a_wireguard_tunnel_are_each_others_peers() -> None:
    left, right = ends_of("nf-10-10")
    assert (left.device, right.device) == ("nf-10-10-wgl", "nf-10-10-wgr"), "their sockets have one folder"
    assert left.table != right.table
    assert " ".join(settings(left, "PEER=")) == (
        f"set nf-10-10-wgl private-key /dev/stdin listen-port {left.port} peer PEER= allowed-ips 0.0.0.0/0 "
        f"endpoint 127.0.0.1:{right.port}"
    )
    assert "endpoint" not in settings(right, "PEER="), "two handshakes at once would both fail"
    with pytest.raises(Unsupported, match="firewall-10-10: firewall-10-10-wgl has more than 15 characters"):
        ends_of("firewall-10-10")


def test_each_end_of_an_ipsec_tunnel_has_an_association_and_policies_of_its_own() -> None:
    lines = ipsec.batch(["aa" * 20, "bb" * 20]).splitlines()
    states = [line.split() for line in lines if line.startswith("xfrm state add")]
    policies = [line.split() for line in lines if line.startswith("xfrm policy add")]
    assert [(each[4], each[6], each[10], each[-1]) for each in states] == [
        ("127.0.0.1", "127.0.0.2", "0x1001", "1"),
        ("127.0.0.2", "127.0.0.1", "0x1002", "2"),
    ]
    for number, (state, key) in enumerate(zip(states, ("0xaa", "0xbb"), strict=True), 1):
        assert f"rfc4106(gcm(aes)) {key}" in " ".join(state)
        assert "flag esn" in " ".join(state), "32 bits of sequence numbers end after an hour"
        own = [each for each in policies if each[each.index("if_id") + 1] == str(number)]
        assert [each[each.index("dir") + 1] for each in own] == ["out", "fwd", "in"]
        assert all(each[each.index("tmpl") + 2] == state[4] for each in own)


def test_what_came_out_of_a_tunnel_is_processed_and_the_rest_of_what_came_into_it_is_lost() -> None:
    numbers, devices = interface_numbers(DEVICES), [end.device for end in ENDS]
    assert passed(numbers, devices) == TunnelCounters(came=20 + 3 + 11 + 1, left=10 + 18)
    assert TunnelCounters(35, 28) - TunnelCounters(2, 2) == TunnelCounters(33, 26)
    with pytest.raises(KeyError, match="tun-right"):
        passed({name: row for name, row in numbers.items() if name != "tun-right"}, devices)


def attributes(request: Request, kind: Any) -> dict[str, object]:
    header = struct.pack("=IHHII", 16 + len(request.body), request.kind, request.flags, 1, 0)
    message = kind(header + request.body)
    message.decode()
    return dict(message["attrs"]) | {"table": message["table"], "type": message.get("type")}


@pytest.mark.parametrize("end", ENDS)
def test_packets_of_a_port_go_into_the_tunnel_and_nowhere_without_it(end: TunnelEnd) -> None:
    way, nowhere, rule = into(end, 7, "csn1x1i1")
    assert attributes(way, rtmsg).items() >= {"RTA_OIF": 7, "table": end.table, "type": 1}.items()
    # The kernel takes the route with the lower metric, the other one when that is gone.
    assert attributes(nowhere, rtmsg).items() >= {"RTA_PRIORITY": 4096, "table": end.table, "type": 6}.items()
    assert attributes(rule, fibmsg).items() >= {"FRA_IIFNAME": "csn1x1i1", "table": end.table}.items()
    assert LEFT.table != RIGHT.table


def test_a_key_is_its_owners_alone_from_the_beginning_and_can_be_forgotten(tmp_path: Path) -> None:
    """The program is told files: no key is an argument, or printed."""
    writes = "-----BEGIN CERTIFICATE-----\\nAQID\\n-----END CERTIFICATE-----\\n"
    openssl = program(tmp_path, "openssl", f'for last; do :; done\nprintf "%b" "{writes}" > "$last"')
    made = openvpn.make_identity(openssl, tmp_path)
    assert made.fingerprint == (
        "03:90:58:C6:F2:C0:CB:49:2C:53:3B:0A:4D:14:EF:77:CC:0F:78:AB:CC:CE:D5:28:7D:84:A1:A2:01:1C:FB:81"
    )
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    made.forget()
    made.forget()
    assert (made.key.exists(), made.certificate.exists()) == (False, True)


def test_a_private_key_is_never_shown_nor_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = f"{'secret' * 7}1="
    reads = f'case $1 in genkey) echo {private};; pubkey) read -r key; echo "$key" | tr sec pub;; esac'
    keys = make_keys(program(tmp_path, "wg", reads))
    assert (keys.private, keys.public) == (private, private.translate(str.maketrans("sec", "pub")))
    assert "secret" not in repr(keys)
    with pytest.raises(CsitError, match="printed no key of 32 bytes in Base64"):
        make_keys(program(tmp_path, "wg", "echo usage"))
    with pytest.raises(CommandFailed, match=r"wg set .* ended with 1: no such device") as failed:
        ask([program(tmp_path, "wg", "echo no such device >&2; exit 1"), "set", "x"], "opensesame")
    assert "opensesame" not in str(failed.value)
    monkeypatch.setattr(wireguard, "WITHIN_S", 0.05)
    with pytest.raises(NotReady, match="wg genkey not ready"):
        ask([program(tmp_path, "wg", "exec sleep 60"), "genkey"])


@pytest.mark.parametrize(
    ("made", "lacks", "kernel_makes", "reasons"),
    [
        (openvpn.OpenVpns, "openvpn", True, ["openvpn missing"]),
        (openvpn.OpenVpns, "tun", True, ["/no/tun cannot be opened"]),
        (openvpn.OpenVpns, "2.6", True, ["OpenVPN 2.5.9 is too old"]),
        (wireguard.WireGuards, "wg", True, ["wg missing"]),
        (wireguard.WireGuards, "wg tun", False, ["wg missing", "/no/tun cannot be opened"]),
        (ipsec.Ipsecs, "", False, ["the kernel makes no XFRM interfaces"]),
        (ipsec.Ipsecs, "", "devices", ["the kernel has no ESP with AES-128-GCM"]),
        (ipsec.Ipsecs, "ip", True, ["ip missing"]),
    ],
)
def test_nothing_is_started_where_something_is_missing(
    made: type[Tunnels], lacks: str, kernel_makes: bool | str, reasons: list[str], *, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each lack is one sentence with the kind that asks for it."""
    driver: Any = sys.modules[made.__module__]
    version = "2.5.9" if lacks == "2.6" else "2.6.14"
    old = program(tmp_path, "openvpn", f"echo OpenVPN {version} x86_64-pc-linux-gnu; exit 1")
    monkeypatch.setattr(driver, "path_of", lambda name: None if name in lacks.split() else old)
    (tmp_path / "tun").touch()
    monkeypatch.setattr(tunnels, "TUN", Path("/no/tun") if "tun" in lacks else tmp_path / "tun")
    for name in ("in_kernel", "kernel_makes"):
        answer = lambda *requests, **_: bool(requests) if kernel_makes == "devices" else kernel_makes  # noqa: E731
        monkeypatch.setattr(driver, name, answer, raising=False)
    kind = driver.__name__.split(".")[-2]
    functions = made(NOTHING, CONTEXT, together([NfKind(kind)]).functions)
    with pytest.raises(Unsupported, match=re.escape(f"{reasons[0]} for NFs of kind {kind}")):
        functions.start()
    assert functions.facts() == {} and functions.processed() == {}
    said = list(driver.missing(in_kernel=kernel_makes) if driver is wireguard else driver.missing())
    assert [str(each).partition(" for NFs")[0] for each in said] == reasons
    if driver is openvpn:
        dut = shipped("local").dut
        assert said[0] in missing_for_some(dut) and said[0] not in missing(dut), "only cells that ask for it lack it"


def test_a_tunnel_of_the_kernel_cannot_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for in_kernel in (False, True):
        monkeypatch.setattr(wireguard, "in_kernel", lambda kernel=in_kernel: kernel)
        functions = wireguard.WireGuards(NOTHING, CONTEXT, together([NfKind("wireguard")]).functions)
        assert bool(functions._companions) is not in_kernel
    (name,) = {function.name for function in functions._functions}
    with pytest.raises(Unsupported, match=f"{name} cannot be hit by 'kill': its tunnel is in the kernel"):
        functions.steps(name, PartEvent.KILL)
    assert functions.steps("nf-9-9", PartEvent.KILL) is None


def test_sockets_of_a_killed_run_are_removed_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wireguard, "_SOCKETS", tmp_path)
    (tmp_path / "nf-1-1-wgl.sock").touch()
    (tmp_path / "wg0.sock").touch()
    assert wireguard.remove_left(["nf-1-1-wgl", "nf-1-1-wgr"]) == [
        "removed the control socket of the WireGuard device nf-1-1-wgl"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["wg0.sock"], "another one's"
