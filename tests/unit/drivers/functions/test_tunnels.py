"""Tunnels as NFs without a machine, also of VPP: ends, keys, routes, counters, missing programs, leftovers."""

import re
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.functions import tunnels
from resources.libraries.python.drivers.functions.ipsec import driver as ipsec
from resources.libraries.python.drivers.functions.openvpn import driver as openvpn
from resources.libraries.python.drivers.functions.openvpn.driver import CIPHER, ENDS, LEFT, RIGHT, Identity
from resources.libraries.python.drivers.functions.tunnels import TunnelCounters, TunnelEnd, Tunnels, passed
from resources.libraries.python.drivers.functions.vpp_ipsec import driver as vpp_ipsec
from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.drivers.vpp.configuration import routing
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.kinds.machine import missing, missing_for_some
from tests.builders import cell_of, cpus, shell_program, shipped
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
    return openvpn.configuration(end, Identity(Path("/run/c.pem"), Path("/run/k.pem"), ""), "AA:BB", mtu).splitlines()


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


def test_ends_of_a_wireguard_tunnel_have_names_that_the_kernel_takes_and_one_of_them_calls() -> None:
    left, right = wireguard.ends_of("nf-10-10")
    assert (left.device, right.device) == ("nf-10-10-wgl", "nf-10-10-wgr")
    assert f"127.0.0.1:{right.port}" in wireguard.settings(left, "PEER=")
    assert "endpoint" not in wireguard.settings(right, "PEER="), "two handshakes at once would both fail"
    with pytest.raises(Unsupported, match="firewall-10-10: firewall-10-10-wgl has more than 15 characters"):
        wireguard.ends_of("firewall-10-10")


def test_what_came_out_of_a_tunnel_is_processed_and_the_rest_of_what_came_into_it_is_lost() -> None:
    numbers, devices = interface_numbers(DEVICES), [end.device for end in ENDS]
    assert passed(numbers, devices) == TunnelCounters(came=20 + 3 + 11 + 1, left=10 + 18)
    assert TunnelCounters(35, 28) - TunnelCounters(2, 2) == TunnelCounters(33, 26)
    with pytest.raises(KeyError, match="tun-right"):
        passed({name: row for name, row in numbers.items() if name != "tun-right"}, devices)


def test_a_key_is_its_owners_alone_from_the_beginning_and_can_be_forgotten(tmp_path: Path) -> None:
    """The program gets files: no key is an argument, or printed."""
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


def test_a_private_key_is_never_shown_nor_an_argument(tmp_path: Path) -> None:
    private = f"{'secret' * 7}1="
    reads = f'case $1 in genkey) echo {private};; pubkey) read -r key; echo "$key" | tr sec pub;; esac'
    keys = wireguard.make_keys(program(tmp_path, "wg", reads))
    assert (keys.private, keys.public) == (private, private.translate(str.maketrans("sec", "pub")))
    assert "secret" not in repr(keys)
    with pytest.raises(CsitError, match="printed no key of 32 bytes in Base64"):
        wireguard.make_keys(program(tmp_path, "wg", "echo usage"))
    with pytest.raises(CommandFailed, match=r"wg set .* ended with 1: no such device") as failed:
        wireguard.ask([program(tmp_path, "wg", "echo no such device >&2; exit 1"), "set", "x"], "opensesame")
    assert "opensesame" not in str(failed.value)


@pytest.mark.parametrize(
    ("made", "lacks", "kernel_makes", "reasons"),
    [
        (openvpn.OpenVpns, "tun", True, ["/no/tun cannot be opened"]),
        (openvpn.OpenVpns, "2.6", True, ["OpenVPN 2.5.9 is too old"]),
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


LOCAL_VPP = shipped("local-vpp")


KIND = NfKind("vpp_ipsec")


def function(*kinds: NfKind, ip_version: int = 4) -> NfPlan:
    dut = LOCAL_VPP.dut.model_copy(update={"containers": kinds})
    topology = LOCAL_VPP.model_copy(update={"nodes": {**LOCAL_VPP.nodes, "DUT1": dut}})
    cell = cell_of("CSP", 1, len(kinds), nf_kinds=kinds)
    return make_plan(topology, cell, cpus(16), ip_version=ip_version).function(f"nf-1-{len(kinds)}")


def associations(lines: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """By number: SPI, key, salt, outer addresses, table, and whether it decrypts."""
    pattern = (
        r"ipsec sa add (\d+) spi (\d+) esp crypto-alg aes-gcm-128 crypto-key (\w{32}) salt 0x(\w{8}) use-esn "
        r"anti-replay-size 256 (inbound )?tunnel src (\S+) dst (\S+) table-id (\d+)"
    )
    found = [re.fullmatch(pattern, line) for line in lines if line.startswith("ipsec sa ")]
    assert all(found), lines
    return {match[1]: tuple(part or "" for part in match.groups()[1:]) for match in found if match}


def test_what_one_end_of_vpp_encrypts_the_other_end_decrypts_with_the_same_key() -> None:
    lines, others = (vpp_ipsec.tunnelling(vpp_ipsec.gateways(function(KIND)), 1518) for _ in range(2))
    found = associations(lines)
    assert sorted(found) == ["10", "11", "20", "21"]
    for out, inbound, source, destination in (("10", "21", ".1", ".2"), ("11", "20", ".2", ".1")):
        sent, received = found[out], found[inbound]
        assert sent[:3] == received[:3], "SPI, key and salt"
        assert (sent[3], received[3]) == ("", "inbound ")
        assert sent[4:6] == received[4:6] == (f"192.0.2{source}", f"192.0.2{destination}")
    assert found["10"][6] == found["20"][6] == "101", "each gateway has a table of its own"
    assert found["11"][6] == found["21"][6] == "102"
    assert found["10"][0] != found["11"][0]
    assert "ipsec tunnel protect ipsec0 sa-in 20 sa-out 10" in lines
    assert "ipsec tunnel protect ipsec1 sa-in 21 sa-out 11" in lines
    keys = {row[1:3] for again in (lines, others) for row in associations(again).values()}
    assert len(keys) == 4, "new in each tunnel and each direction"


@pytest.mark.parametrize(("version", "left", "right"), [(4, "10.1.0.0/16", "20.1.0.0/16"), (6, "", "")])
def test_a_gateway_of_vpp_reaches_the_other_side_through_the_tunnel_only(version: int, left: str, right: str) -> None:
    asked = function(KIND, ip_version=version)
    left, right = left or asked.left.route.prefix, right or asked.right.route.prefix
    family = "ip6" if version == 6 else "ip"
    lines = (*vpp_ipsec.tunnelling(vpp_ipsec.gateways(asked), 1518), *routing(asked, (101, 102)))
    routes = {line for line in lines if line.startswith("ip route add ")}
    assert routes == {
        f"ip route add {right} table 101 via ipsec0",
        f"ip route add {left} table 101 via {asked.left.route.address} {asked.left.name}",
        f"ip route add {left} table 102 via ipsec1",
        f"ip route add {right} table 102 via {asked.right.route.address} {asked.right.name}",
    }
    assert lines.index("ip table add 102") < lines.index(f"set interface {family} table {asked.right.name} 102")
    table = f"set interface {family} table {asked.left.name} 101"
    assert lines.index(table) < lines.index(f"set interface ip address {asked.left.name} {asked.left.address}")


def test_answers_to_translated_packets_go_through_the_tunnel_too() -> None:
    asked = function(NfKind("linux_nat"), KIND)
    (translated,) = asked.left.route.also
    lines = (*vpp_ipsec.tunnelling(vpp_ipsec.gateways(asked), 1518), *routing(asked, (101, 102)))
    assert f"ip route add {translated} table 102 via ipsec1" in lines
    assert f"ip route add {translated} table 101 via {asked.left.route.address} {asked.left.name}" in lines


@pytest.mark.parametrize("frame_bytes", [64, 1518, 9018])
def test_vpp_fragments_no_packet(frame_bytes: int) -> None:
    lines = vpp_ipsec.tunnelling(vpp_ipsec.gateways(function(KIND)), frame_bytes)
    mtu = {line.split()[5]: int(line.split()[4]) for line in lines if line.startswith("set interface mtu packet ")}
    packet = frame_bytes - 18
    encrypted = 20 + 8 + 8 + packet + (-packet - 2) % 4 + 2 + 16
    assert min(mtu["ipsec0"], mtu["ipsec1"]) >= packet
    assert min(mtu["pipe0.0"], mtu["pipe0.1"]) >= encrypted


ENGINES = (
    "lib/x86_64-linux-gnu/vpp_crypto_engines/native_crypto_engine.so",
    "lib/vpp_plugins/crypto_openssl_plugin.so",  # of earlier versions
)


@pytest.mark.parametrize(
    ("engines", "prefix", "lacks"),
    [
        (ENGINES[:1], "", []),
        (ENGINES[1:], "", []),
        ([], "", ["VPP at {} has no crypto engine for NFs of kind vpp_ipsec; install the package vpp-crypto-engines"]),
        (ENGINES, "nothing", ["there is no program"]),
    ],
)
def test_a_vpp_that_cannot_encrypt_is_reported(
    tmp_path: Path, engines: list[str], prefix: str, lacks: list[str]
) -> None:
    plugins = [f"lib/vpp_plugins/{name}_plugin.so" for name in ("memif", "af_packet")]
    for name in ("bin/vpp", *plugins, *engines):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    node = cast(DutNode, SimpleNamespace(settings=lambda _: Vpp(prefix=str(tmp_path / prefix))))
    found = list(map(str, vpp_ipsec.missing(node, KIND)))
    assert len(found) == len(lacks)
    assert all(reason.format(tmp_path) in said for reason, said in zip(lacks, found, strict=True))
