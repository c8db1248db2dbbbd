"""IPsec tunnels of VPP as NFs without a machine: commands, keys, and what is missing."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.functions.vpp_ipsec.driver import gateways, missing, tunnelling
from resources.libraries.python.drivers.vpp.configuration import routing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, cpus, shipped

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


def test_what_one_end_encrypts_the_other_end_decrypts_with_the_same_key() -> None:
    lines, others = (tunnelling(gateways(function(KIND)), 1518) for _ in range(2))
    found = associations(lines)
    assert sorted(found) == ["10", "11", "20", "21"]
    for out, into, source, destination in (("10", "21", ".1", ".2"), ("11", "20", ".2", ".1")):
        sent, received = found[out], found[into]
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
def test_a_gateway_reaches_the_other_side_through_the_tunnel_only(version: int, left: str, right: str) -> None:
    asked = function(KIND, ip_version=version)
    left, right = left or asked.left.route.prefix, right or asked.right.route.prefix
    family = "ip6" if version == 6 else "ip"
    lines = (*tunnelling(gateways(asked), 1518), *routing(asked, (101, 102)))
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
    lines = (*tunnelling(gateways(asked), 1518), *routing(asked, (101, 102)))
    assert f"ip route add {translated} table 102 via ipsec1" in lines
    assert f"ip route add {translated} table 101 via {asked.left.route.address} {asked.left.name}" in lines


@pytest.mark.parametrize("frame_bytes", [64, 1518, 9018])
def test_no_packet_is_fragmented(frame_bytes: int) -> None:
    lines = tunnelling(gateways(function(KIND)), frame_bytes)
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
    found = list(map(str, missing(node, KIND)))
    assert len(found) == len(lacks)
    assert all(reason.format(tmp_path) in said for reason, said in zip(lacks, found, strict=True))
