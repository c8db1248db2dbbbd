"""Our client of the CLI socket against bytes like VPP's. That VPP sends such bytes, the integration tests see."""

import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.host.sockets import answers as reading
from resources.libraries.python.drivers.vpp.cli import CommandLine, check, check_shown
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from tests.unit.drivers.vpp.vpp_stand_in import OPTIONS, TERMINAL, stand_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cli.sock"


def test_it_says_that_it_is_no_person_and_takes_a_line_at_a_time(path: Path) -> None:
    with (
        stand_in(path, lambda line: [b"you said " + line + b"\r\n", b"\0"]) as read,
        closing(CommandLine(path)) as cli,
    ):
        assert cli.ask("show version") == "you said show version"
        assert cli.ask("show errors") == "you said show errors"
    assert read == [TERMINAL, b"", b"show version", b"show errors"], "one connection, and its type before any command"


ROW = b"csv1p1   1   up\n"


@pytest.mark.parametrize(
    ("options", "reply", "expected"),
    [
        (tuple(bytes([byte]) for byte in OPTIONS), [b"fine\0"], "fine"),  # byte by byte
        ((OPTIONS,), [ROW * 5000, ROW * 5000, b"\0"], (ROW.decode() * 10_000).rstrip()),  # in pieces, and long
        ((OPTIONS, b"    _______    _\r\n", b"vpp# "), [b"fine\0"], "fine"),  # banner and prompt came too early
        ((OPTIONS,), [b"\x1b[33mID\x1b[0m name\n\0"], "ID name"),  # colours
    ],
    ids=["bytes", "pieces", "banner", "colours"],
)
def test_a_reply_is_what_came_between_options_and_end(
    path: Path, options: tuple[bytes, ...], reply: list[bytes], expected: str
) -> None:
    with stand_in(path, lambda _: reply, options), closing(CommandLine(path)) as cli:
        assert cli.ask("show version") == expected


def test_a_refused_command_is_reported_and_later_ones_are_not_sent(path: Path) -> None:
    refused = b"set interface state: unknown interface `nope up'\n\0"
    commands = [f"set interface state {name} up" for name in ("a", "nope", "b")]
    said = r"set interface state nope up was refused: .*unknown interface `nope up'"
    with (
        stand_in(path, lambda line: [refused if b"nope" in line else b"\0"]) as read,
        closing(CommandLine(path)) as cli,
        pytest.raises(CommandFailed, match=said),
    ):
        cli.do(commands)
    assert b"set interface state b up" not in read


def test_a_sudden_end_is_reported_and_the_next_command_reconnects(path: Path) -> None:
    answers = iter([[b"half a rep", b""], [b"fine\0"]])
    with stand_in(path, lambda _: next(answers)) as read, closing(CommandLine(path)) as cli:
        with pytest.raises(CsitError, match=r"a reply to 'show version'.* closed"):
            cli.ask("show version")
        assert cli.ask("show version") == "fine"
    assert read.count(TERMINAL) == 2


def test_a_late_reply_is_not_taken_for_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = threading.Event()

    def answer(line: bytes) -> list[bytes]:
        if line == b"show slow":
            late.wait(60.0)
        return [line + b"\0"]

    with stand_in(path, answer), closing(CommandLine(path, 60.0)) as cli:
        cli.ask("show version")
        with monkeypatch.context() as patch, pytest.raises(NotReady):
            # The client finds these times, so the stand-in may wait for a CPU as long as it has to.
            patch.setattr(reading, "time", SimpleNamespace(monotonic=iter((0.0, 59.9)).__next__))
            cli.ask("show slow")
        late.set()
        assert cli.ask("show version") == "show version"


def test_one_that_never_speaks_or_is_not_there_is_reported(path: Path) -> None:
    with pytest.raises(CsitError, match=r"cannot be asked 'show version': No such file"):
        CommandLine(path).ask("show version")
    with stand_in(path, lambda _: [b"\0"], ()), pytest.raises(NotReady, match=r"telnet options .*last seen: nothing"):
        CommandLine(path, within_s=0.1).ask("show version")


@pytest.mark.parametrize("command", ["", "show version\nquit", "x" * 3000, "show \0"])
def test_what_is_not_one_line_is_not_sent(path: Path, command: str) -> None:
    with pytest.raises(CsitError, match="no command line for VPP"):
        CommandLine(path).ask(command)


def test_keys_are_in_no_error_of_a_connection_that_ends(path: Path) -> None:
    key = "0a" * 16
    command = f"ipsec sa add 10 crypto-key {key}"
    with pytest.raises(CsitError, match="cannot be asked") as refused:
        CommandLine(path).do([command])
    said = r"a reply to 'ipsec sa add 10 crypto-key \*\*\*'"
    with stand_in(path, lambda _: [b""]), pytest.raises(CsitError, match=said) as failed:
        CommandLine(path).do([command])
    assert key not in str(failed.value) + str(refused.value)


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
    assert command in str(failed.value) and reply in str(failed.value)


def test_what_is_not_known_cannot_be_shown() -> None:
    with pytest.raises(CommandFailed, match="show foo was refused: show: unknown input `foo'"):
        check_shown("show foo", "show: unknown input `foo'")
    check_shown("show errors", "   Count   Node  Reason\n  3  x-tx  unknown interface type  error")


def test_keys_are_in_no_message() -> None:
    command = f"ipsec sa add 10 spi 4097 esp crypto-alg aes-gcm-128 crypto-key {'0a' * 16} salt 0x01020304 use-esn"
    reply = f"ipsec sa: parse error: 'crypto-key {'0a' * 16} salt 0x01020304'"
    refused = r"crypto-key \*\*\* salt \*\*\* use-esn was refused: .*parse error"
    with pytest.raises(CommandFailed, match=refused) as failed:
        check(command, reply)
    said = f"{failed.value!r} {failed.value.whole} {failed.value.argv} {failed.value.stderr}"
    assert "0a0a" not in said and "01020304" not in said
