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
from resources.libraries.python.drivers.functions.openvpn.driver import ENDS
from resources.libraries.python.drivers.functions.tunnels import TunnelCounters, Tunnels, passed
from resources.libraries.python.drivers.functions.vpp_ipsec import driver as vpp_ipsec
from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.testbed.kinds.machine import missing, missing_for_some
from tests.builders import cpus, plan_of, shell_program, shipped
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


def test_an_end_of_a_wireguard_tunnel_has_a_name_that_the_kernel_takes() -> None:
    assert [end.device for end in wireguard.ends_of("nf-10-10")] == ["nf-10-10-wgl", "nf-10-10-wgr"]
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


KIND = NfKind("vpp_ipsec")


@pytest.mark.parametrize("frame_bytes", [64, 1518, 9018])
def test_vpp_fragments_no_packet(frame_bytes: int) -> None:
    (function,) = plan_of("local-vpp", "CSP", cores=cpus(16), nf_kinds=(KIND,)).functions
    lines = vpp_ipsec.tunnelling(vpp_ipsec.gateways(function), frame_bytes)
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
