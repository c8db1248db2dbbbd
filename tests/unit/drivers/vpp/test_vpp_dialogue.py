"""Our client of the CLI socket against bytes like VPP's. That VPP sends such bytes, the integration tests see."""

import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.host.sockets import answers as reading
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from tests.unit.drivers.vpp.vpp_stand_in import OPTIONS, TERMINAL, stand_in


def ask(path: Path, command: str) -> str:
    with closing(CommandLine(path)) as cli:
        return cli.ask(command)


def test_it_says_that_it_is_no_person_and_takes_a_line_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    with stand_in(path, lambda line: [b"you said " + line + b"\r\n", b"\0"]) as read:
        cli = CommandLine(path)
        assert cli.ask("show version") == "you said show version"
        assert cli.ask("show errors") == "you said show errors"
        cli.close()
    assert read == [TERMINAL, b"", b"show version", b"show errors"], "one connection, and its type before any command"


def test_options_may_come_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    with stand_in(path, lambda _: [b"fine\0"], tuple(bytes([byte]) for byte in OPTIONS)):
        assert ask(path, "show version") == "fine"


def test_a_reply_may_come_in_pieces_and_be_long(tmp_path: Path) -> None:
    path, row = tmp_path / "cli.sock", b"csv1p1   1   up\n"
    with stand_in(path, lambda _: [row * 5000, row * 5000, b"\0"]):
        assert ask(path, "show interface").count("csv1p1") == 10_000


def test_a_banner_and_a_prompt_that_came_too_early_are_no_reply(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    with stand_in(path, lambda _: [b"fine\0"], (OPTIONS, b"    _______    _\r\n", b"vpp# ")):
        assert ask(path, "show version") == "fine"


def test_colours_are_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    with stand_in(path, lambda _: [b"\x1b[33mID\x1b[0m name\n\0"]):
        assert ask(path, "show threads") == "ID name"


def test_a_refused_command_is_reported_and_later_ones_are_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    refused = b"set interface state: unknown interface `nope up'\n\0"
    with stand_in(path, lambda line: [refused if b"nope" in line else b"\0"]) as read:
        cli = CommandLine(path)
        with pytest.raises(
            CommandFailed, match=r"set interface state nope up was refused: .*unknown interface `nope up'"
        ):
            cli.do(["set interface state a up", "set interface state nope up", "set interface state b up"])
        cli.close()
    assert b"set interface state b up" not in read


def clock(monkeypatch: pytest.MonkeyPatch, *looks_s: float) -> None:
    """Let the client find these times; then the stand-in may wait for a CPU as long as it has to."""
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=iter(looks_s).__next__))


def test_a_sudden_end_is_reported_and_the_next_command_reconnects(tmp_path: Path) -> None:
    path, answers = tmp_path / "cli.sock", iter([[b"half a rep", b""], [b"fine\0"]])
    with stand_in(path, lambda _: next(answers)) as read:
        cli = CommandLine(path)
        with pytest.raises(CsitError, match=r"a reply to 'show version'.* closed"):
            cli.ask("show version")
        assert cli.ask("show version") == "fine"
        cli.close()
    assert read.count(TERMINAL) == 2


def test_a_late_reply_is_not_taken_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, late = tmp_path / "cli.sock", threading.Event()

    def answer(line: bytes) -> list[bytes]:
        if line == b"show slow":
            late.wait(60.0)
        return [line + b"\0"]

    with stand_in(path, answer), closing(CommandLine(path, 60.0)) as cli:
        cli.ask("show version")
        with monkeypatch.context() as patch, pytest.raises(NotReady):
            clock(patch, 0.0, 59.9)
            cli.ask("show slow")
        late.set()
        assert cli.ask("show version") == "show version"


def test_one_that_never_speaks_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "cli.sock"
    with (
        stand_in(path, lambda _: [b"\0"], ()),
        pytest.raises(NotReady, match=r"its telnet options .*last seen: nothing"),
    ):
        CommandLine(path, within_s=0.1).ask("show version")


def test_an_address_where_nothing_listens(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match=r"cannot be asked 'show version': No such file"):
        CommandLine(tmp_path / "cli.sock").ask("show version")


@pytest.mark.parametrize("command", ["", "show version\nquit", "x" * 3000, "show \0"])
def test_what_is_not_one_line_is_not_sent(tmp_path: Path, command: str) -> None:
    with pytest.raises(CsitError, match="no command line for VPP"):
        CommandLine(tmp_path / "cli.sock").ask(command)


def test_keys_are_in_no_error_of_a_connection_that_ends(tmp_path: Path) -> None:
    path, key = tmp_path / "cli.sock", "0a" * 16
    with (
        stand_in(path, lambda _: [b""]),
        pytest.raises(CsitError, match=r"a reply to 'ipsec sa add 10 crypto-key \*\*\*'") as failed,
    ):
        CommandLine(path).do([f"ipsec sa add 10 crypto-key {key}"])
    assert key not in str(failed.value)
    with pytest.raises(CsitError, match="cannot be asked") as refused:
        CommandLine(tmp_path / "none.sock").do([f"ipsec sa add 10 crypto-key {key}"])
    assert key not in str(refused.value)
