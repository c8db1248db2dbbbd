"""Tunnels as NFs without a machine: configuration of the ends, keys, routes, counters, missing programs."""

import re
import stat
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.functions import tunnels
from resources.libraries.python.drivers.functions.openvpn import driver
from resources.libraries.python.drivers.functions.openvpn.driver import (
    CIPHER,
    ENDS,
    LEFT,
    RIGHT,
    OpenVpns,
    TunnelFiles,
    configuration,
)
from resources.libraries.python.drivers.functions.tunnels import TunnelCounters, TunnelEnd, into, passed
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.kinds.machine import missing, missing_for_some
from tests.unit.planning.polled_ports import together

LOCAL = Path(__file__).parents[4] / "topologies" / "local.yaml"
DEVICES = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo:    9       9    0    0    0     0          0         0        9       9    0    0    0     0       0          0
tun-left:  840    10    0    5    0     0          0         0     1680      20    0    3    0     0       0          0
tun-right: 1512   18    0    0    0     0          0         0      924      11    0    1    0     0       0          0
"""


DEVICES_OF_ENDS = [end.device for end in ENDS]


def told(end: TunnelEnd, mtu: int = 1500) -> list[str]:
    return configuration(end, TunnelFiles("/run/c.pem", "/run/k.pem", "AA:BB"), mtu).splitlines()


def test_the_ends_of_a_tunnel_are_each_others_peers_and_pass_packets_as_they_are() -> None:
    left, right = told(LEFT), told(RIGHT)
    assert {"dev tun-left", "lport 1194", "remote 127.0.0.1 1195", "tls-server", "dh none"} <= set(left)
    assert {"dev tun-right", "lport 1195", "remote 127.0.0.1 1194", "tls-client"} <= set(right)
    for lines in (left, right):
        assert {"local 127.0.0.1", "mssfix 0", f"data-ciphers {CIPHER}", "disable-dco", "reneg-sec 0"} <= set(lines)
        assert {'cert "/run/c.pem"', 'key "/run/k.pem"', "peer-fingerprint AA:BB"} <= set(lines)
        assert not [line for line in lines if line.startswith(("fragment", "comp", "ifconfig"))]
    assert "tun-mtu 1500" in left
    assert "tun-mtu 8982" in told(RIGHT, 8982)


def test_what_came_out_of_a_tunnel_is_processed_and_the_rest_of_what_came_into_it_is_lost() -> None:
    numbers = interface_numbers(DEVICES)
    assert passed(numbers, DEVICES_OF_ENDS) == TunnelCounters(came=20 + 3 + 11 + 1, left=10 + 18)
    assert TunnelCounters(35, 28) - TunnelCounters(2, 2) == TunnelCounters(33, 26)
    with pytest.raises(KeyError, match="tun-right"):
        passed({name: row for name, row in numbers.items() if name != "tun-right"}, DEVICES_OF_ENDS)


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


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_key_is_its_owners_alone_from_the_beginning_and_can_be_forgotten(tmp_path: Path) -> None:
    """The program is told files: no key is an argument, or printed."""
    writes = "-----BEGIN CERTIFICATE-----\\nAQID\\n-----END CERTIFICATE-----\\n"
    openssl = program(tmp_path, "openssl", f'for last; do :; done\nprintf "%b" "{writes}" > "$last"')
    made = driver.make_identity(openssl, tmp_path)
    assert made.fingerprint == (
        "03:90:58:C6:F2:C0:CB:49:2C:53:3B:0A:4D:14:EF:77:CC:0F:78:AB:CC:CE:D5:28:7D:84:A1:A2:01:1C:FB:81"
    )
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    made.forget()
    made.forget()
    assert not made.key.exists()
    assert made.certificate.exists()


def test_an_openssl_that_fails_or_hangs_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandFailed, match=r"openssl req .* ended with 3: no curve"):
        driver.make_identity(program(tmp_path, "openssl", "echo no curve >&2; exit 3"), tmp_path)
    monkeypatch.setattr(driver, "_WITHIN_S", 0.05)
    with pytest.raises(NotReady, match="a certificate by openssl not ready"):
        driver.make_identity(program(tmp_path, "openssl", "exec sleep 60"), tmp_path)
    with pytest.raises(CsitError, match=r"^/no/openssl cannot be run: No such file or directory$"):
        driver.make_identity("/no/openssl", tmp_path)


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path, *, version: str = "OpenVPN 2.6.14", tun: str = "") -> None:
    """One with an openvpn of a version, openssl and a device for tunnels."""
    paths = {
        "openvpn": program(folder, "openvpn", f"echo {version} x86_64-pc-linux-gnu; exit 1") if version else None,
        "openssl": "/usr/bin/openssl",
    }
    (folder / "tun").touch()
    monkeypatch.setattr(driver, "path_of", paths.get)
    monkeypatch.setattr(tunnels, "TUN", Path(tun) if tun else folder / "tun")


def test_a_machine_says_in_one_sentence_each_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, tmp_path)
    assert tuple(driver.missing()) == ()
    machine(monkeypatch, tmp_path, version="")
    (problem,) = map(str, driver.missing())
    assert problem == "openvpn missing for NFs of kind openvpn; install it: apt-get install openvpn"
    machine(monkeypatch, tmp_path, version="OpenVPN 2.5.11")
    (problem,) = map(str, driver.missing())
    assert problem.startswith("OpenVPN 2.5.11 is too old for NFs of kind openvpn; install 2.6 or later")
    machine(monkeypatch, tmp_path, tun="/no/tun")
    (problem,) = map(str, driver.missing())
    assert problem == (
        "/no/tun cannot be opened for NFs of kind openvpn (No such file or directory); "
        "load the driver: modprobe tun; in a container: --device /dev/net/tun"
    )


def test_only_cells_that_ask_for_a_tunnel_lack_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, tmp_path, version="")
    dut = load_topology(LOCAL).dut
    (sentence,) = driver.missing()
    assert sentence in missing_for_some(dut)
    assert sentence not in missing(dut)


def test_nothing_is_started_where_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, tmp_path, tun="/no/tun")
    nothing = cast(Any, SimpleNamespace())  # would fail on any use
    context = cast(Any, SimpleNamespace(fabric=nothing, lock=nothing, companions=lambda *_, **__: nothing))
    functions = OpenVpns(nothing, context, together([NfKind("openvpn")]).functions)
    with pytest.raises(Unsupported, match=re.escape("/no/tun cannot be opened for NFs of kind openvpn")):
        functions.start()
    assert functions.facts() == {}
    assert functions.processed() == {}
