"""WireGuard tunnels as NFs without a machine: settings of the ends, keys, missing programs, leftovers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.functions import tunnels
from resources.libraries.python.drivers.functions.wireguard import driver
from resources.libraries.python.drivers.functions.wireguard.driver import WireGuards, ask, ends_of, make_keys, settings
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.kinds import NfKind
from tests.builders import shell_program
from tests.unit.planning.polled_ports import together


def program(folder: Path, name: str, text: str) -> str:
    return str(shell_program(folder / name, text))


def test_the_ends_of_a_tunnel_are_each_others_peers() -> None:
    left, right = ends_of("nf-10-10")
    assert (left.device, right.device) == ("nf-10-10-wgl", "nf-10-10-wgr"), "their sockets have one folder"
    assert left.table != right.table
    told = " ".join(settings(left, "PEER="))
    assert told == (
        f"set nf-10-10-wgl private-key /dev/stdin listen-port {left.port} peer PEER= allowed-ips 0.0.0.0/0 "
        f"endpoint 127.0.0.1:{right.port}"
    )
    assert "endpoint" not in settings(right, "PEER="), "two handshakes at once would both fail"
    with pytest.raises(Unsupported, match="firewall-10-10: firewall-10-10-wgl has more than 15 characters"):
        ends_of("firewall-10-10")


def test_a_private_key_is_passed_by_standard_input_and_not_shown(tmp_path: Path) -> None:
    private = f"{'secret' * 7}1="
    reads = f'case $1 in genkey) echo {private};; pubkey) read -r key; echo "$key" | tr sec pub;; esac'
    keys = make_keys(program(tmp_path, "wg", reads))
    assert (keys.private, keys.public) == (private, private.translate(str.maketrans("sec", "pub")))
    assert "secret" not in repr(keys)
    with pytest.raises(CsitError, match="printed no key of 32 bytes in Base64"):
        make_keys(program(tmp_path, "wg", "echo usage"))


def test_a_wg_that_fails_or_hangs_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandFailed, match=r"wg set .* ended with 1: no such device") as failed:
        ask([program(tmp_path, "wg", "echo no such device >&2; exit 1"), "set", "x"], "opensesame")
    assert "opensesame" not in str(failed.value)
    monkeypatch.setattr(driver, "WITHIN_S", 0.05)
    with pytest.raises(NotReady, match="wg genkey not ready"):
        ask([program(tmp_path, "wg", "exec sleep 60"), "genkey"])
    with pytest.raises(CsitError, match=r"^/no/wg cannot be run: No such file or directory$"):
        ask(["/no/wg", "genkey"])


def test_a_machine_says_in_one_sentence_each_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "path_of", {"wireguard-go": "/usr/bin/wireguard-go"}.get)
    monkeypatch.setattr(tunnels, "TUN", tmp_path / "tun")
    wg, tun = map(str, driver.missing(in_kernel=False))
    assert wg == (
        "wg missing for NFs of kind wireguard; install it: apt-get install --no-install-recommends wireguard-tools"
    )
    assert tun.startswith(f"{tmp_path}/tun cannot be opened for NFs of kind wireguard")
    assert [str(each) for each in driver.missing(in_kernel=True)] == [wg], "neither a program nor a tun device"
    nothing = cast(Any, SimpleNamespace())  # would fail on any use
    context = cast(Any, SimpleNamespace(fabric=nothing, lock=nothing, companions=lambda *_, **__: nothing))
    row = together([NfKind("wireguard")]).functions
    for in_kernel in (False, True):
        monkeypatch.setattr(driver, "in_kernel", lambda kernel=in_kernel: kernel)
        functions = WireGuards(nothing, context, row)
        assert bool(functions._companions) is not in_kernel
        with pytest.raises(Unsupported, match=r"^wg missing for NFs of kind wireguard"):
            functions.start()
        assert functions.facts() == {} and functions.processed() == {}


def test_a_tunnel_of_the_kernel_cannot_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "in_kernel", lambda: True)
    nothing = cast(Any, SimpleNamespace())
    context = cast(Any, SimpleNamespace(fabric=nothing, lock=nothing))
    functions = WireGuards(nothing, context, together([NfKind("wireguard")]).functions)
    (name,) = {function.name for function in functions._functions}
    with pytest.raises(Unsupported, match=f"{name} cannot be hit by 'kill': its tunnel is in the kernel"):
        functions.steps(name, PartEvent.KILL)
    assert functions.steps("nf-9-9", PartEvent.KILL) is None


def test_sockets_of_a_killed_run_are_removed_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_SOCKETS", tmp_path)
    (tmp_path / "nf-1-1-wgl.sock").touch()
    (tmp_path / "wg0.sock").touch()
    assert driver.remove_left(["nf-1-1-wgl", "nf-1-1-wgr"]) == [
        "removed the control socket of the WireGuard device nf-1-1-wgl"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["wg0.sock"], "another one's"
