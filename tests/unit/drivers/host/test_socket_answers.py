"""Programs on sockets that send without end, at once or a little now and then."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.monitor import suricata
from resources.libraries.python.drivers.functions.vm.qemu import Monitor
from resources.libraries.python.drivers.functions.vm_application.guest_software import GuestConnections
from resources.libraries.python.drivers.host.sockets import answers
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.errors import CsitError, NotReady
from tests.unit.drivers.vpp.vpp_stand_in import OPTIONS

_EVENT = b'{"event":"RESET"}\n'
_GREETING = b'{"QMP":{"version":{"qemu":{"major":8,"minor":0,"micro":0},"package":""}}}\n'


@contextmanager
def speaking(path: Path, first: bytes, piece: bytes, pause_s: float) -> Iterator[None]:
    """Serve one connection that gets the same piece over and over."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                connection.sendall(first)
                while True:
                    connection.sendall(piece)
                    time.sleep(pause_s)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(20.0)
        assert not thread.is_alive(), "its connection is still open"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_REPLY_BYTES", 1 << 20)
    monkeypatch.setattr(suricata, "_ANSWER_S", 0.5)


def _of_vpp(path: Path) -> object:
    with closing(CommandLine(path, 0.5)) as cli:
        return cli.ask("show version")


def _of_guest(path: Path) -> object:
    with closing(GuestConnections("nf-1-1", path, 0.5)) as guest:
        return guest.ask("counts")


def _of_qemu(path: Path) -> object:
    with socket.socket(socket.AF_UNIX) as near:
        near.connect(str(path))
        return Monitor("nf-1-1", near, 0.5)


def _of_suricata(path: Path) -> object:
    return suricata.taken(path, "lan")


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.0, 0.0002])
@pytest.mark.parametrize(
    ("ask", "first", "piece"),
    [
        (_of_vpp, OPTIONS, b"x" * 1000),
        (_of_guest, b"", b"x\n" * 500),
        (_of_qemu, _GREETING, _EVENT),
        (_of_qemu, b"", b"x" * 1000),
        (_of_suricata, b"", b"{}}"),
    ],
)
@pytest.mark.usefixtures("soon")
def test_endless_answers_end(
    ask: Callable[[Path], object], first: bytes, piece: bytes, pause_s: float, tmp_path: Path
) -> None:
    with speaking(tmp_path / "socket", first, piece, pause_s), pytest.raises((CsitError, NotReady)):
        ask(tmp_path / "socket")


def test_an_answer_is_bounded_by_its_size() -> None:
    near, far = socket.socketpair()

    def send_all() -> None:
        with suppress(OSError):
            far.sendall(bytes(17 << 20))

    with near, far, pytest.raises(CsitError, match="more than 16 MB"):
        threading.Thread(target=send_all, daemon=True).start()
        answers.receive(near, "an answer", lambda _: False, 60.0)
