"""IPsec tunnels of VPP as NFs without a machine: commands, keys, and what is missing."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.functions.ipsec import driver
from resources.libraries.python.drivers.functions.vpp_ipsec.driver import gateways, missing, tunnelling
from resources.libraries.python.drivers.vpp.configuration import routing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.plan import make_plan
from tests.builders import shipped
from tests.unit.planning.polled_ports import together

LOCAL_VPP = shipped("local-vpp")
CPUS = layout((cpu, cpu, 0, 0) for cpu in range(16))
KIND = NfKind("vpp_ipsec")


def function(*kinds: NfKind, ip_version: int = 4) -> NfPlan:
    cell = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=len(kinds), nf_kinds=kinds)
    dut = LOCAL_VPP.dut.model_copy(update={"containers": kinds})
    topology = LOCAL_VPP.model_copy(update={"nodes": {**LOCAL_VPP.nodes, "DUT1": dut}})
    return make_plan(topology, cell, CPUS, ip_version=ip_version).function(f"nf-1-{len(kinds)}")


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
    ends = gateways(function(KIND))
    lines = tunnelling(ends, 1518)
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


def test_keys_are_new_in_each_tunnel_and_each_direction() -> None:
    asked = function(KIND)
    made = [found[1:3] for _ in range(2) for found in associations(tunnelling(gateways(asked), 1518)).values()]
    assert len(set(made)) == 4


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


def lacking(vpp: Vpp) -> list[PreflightProblem]:
    return list(missing(cast(DutNode, SimpleNamespace(settings=lambda _: vpp)), NfKind("vpp_ipsec")))


def installed(folder: Path, *names: str) -> Vpp:
    for name in ("bin/vpp", *names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    return Vpp(prefix=str(folder))


def test_an_installation_that_cannot_encrypt_is_reported_in_one_sentence(tmp_path: Path) -> None:
    routing_plugins = [f"lib/vpp_plugins/{name}_plugin.so" for name in ("memif", "af_packet")]
    vpp = installed(tmp_path, *routing_plugins)
    (problem,) = map(str, lacking(vpp))
    assert problem == (
        f"VPP at {tmp_path} has no crypto engine for NFs of kind vpp_ipsec; install the package vpp-crypto-engines, "
        "or build VPP with one"
    )
    (problem,) = map(str, lacking(Vpp(prefix=str(tmp_path / "nothing"))))
    assert "there is no program" in problem


@pytest.mark.parametrize(
    "engine",
    ["lib/x86_64-linux-gnu/vpp_crypto_engines/native_crypto_engine.so", "lib/vpp_plugins/crypto_openssl_plugin.so"],
)
def test_an_engine_is_a_library_or_in_earlier_versions_a_plugin(tmp_path: Path, engine: str) -> None:
    plugins = [f"lib/vpp_plugins/{name}_plugin.so" for name in ("memif", "af_packet")]
    assert not (lacking(installed(tmp_path, *plugins, engine)))


def test_each_end_has_an_association_and_policies_of_its_own() -> None:
    lines = driver.batch(["aa" * 20, "bb" * 20]).splitlines()
    states = [line.split() for line in lines if line.startswith("xfrm state add")]
    policies = [line.split() for line in lines if line.startswith("xfrm policy add")]
    assert [(each[4], each[6], each[10], each[-1]) for each in states] == [
        ("127.0.0.1", "127.0.0.2", "0x1001", "1"),
        ("127.0.0.2", "127.0.0.1", "0x1002", "2"),
    ]
    for number, state in enumerate(states, 1):
        assert "rfc4106(gcm(aes)) " + ("0xaa" if number == 1 else "0xbb") in " ".join(state)
        assert "flag esn" in " ".join(state), "32 bits of sequence numbers end after an hour"
        own = [each for each in policies if each[each.index("if_id") + 1] == str(number)]
        assert [each[each.index("dir") + 1] for each in own] == ["out", "fwd", "in"]
        assert all(each[each.index("tmpl") + 2] == state[4] for each in own)


def test_a_kernel_without_xfrm_interfaces_or_esp_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "path_of", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(driver, "kernel_makes", lambda *_, **__: False)
    (problem,) = driver.missing()
    assert str(problem) == (
        "the kernel makes no XFRM interfaces for NFs of kind ipsec; boot a kernel with CONFIG_XFRM_INTERFACE"
    )
    nothing = cast(Any, SimpleNamespace())  # would fail on any use
    context = cast(Any, SimpleNamespace(fabric=nothing, lock=nothing, companions=lambda *_, **__: nothing))
    functions = driver.Ipsecs(nothing, context, together([NfKind("ipsec")]).functions)
    with pytest.raises(Unsupported, match="the kernel makes no XFRM interfaces"):
        functions.start()
    assert functions.facts() == {} and functions.processed() == {}
    monkeypatch.setattr(driver, "kernel_makes", lambda *requests, **_: bool(requests))
    (problem,) = driver.missing()
    assert str(problem) == (
        "the kernel has no ESP with AES-128-GCM for NFs of kind ipsec; boot a kernel with CONFIG_INET_ESP"
    )
    monkeypatch.setattr(driver, "path_of", lambda _: None)
    (problem,) = driver.missing()
    assert "ip missing for NFs of kind ipsec" in str(problem)
