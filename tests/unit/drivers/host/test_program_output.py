"""Programs that are run to their end: what they print, and how each way to fail is reported."""

import os
import sys
from pathlib import Path

import pytest

from resources.libraries.python.dialogue import error_of, plain
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.init import READY
from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_input_folder_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ.get('A'), 'HOME' in os.environ)"
    done = completed(python(code), 20, stdin="key", folder=tmp_path, environment={"A": "b"})
    assert done.stdout.split() == ["key", str(tmp_path), "b", "False"]
    assert completed(["cat"], 20, stdin=b"\xff\n").stdout == "\ufffd\n"
    assert completed(["cat"], 20).stdout == ""


def test_status() -> None:
    failing = python("import sys; print('out'); sys.exit('why')")
    with pytest.raises(CommandFailed, match="ended with 1: why") as raised:
        completed(failing, 20)
    assert raised.value.status == 1 and raised.value.argv == tuple(failing)
    done = completed(failing, 20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "out\n", "why\n")


def test_a_node_passes_on_the_end_of_what_a_failing_program_printed() -> None:
    with pytest.raises(CommandFailed) as raised:
        completed(python("import sys; sys.exit('a frame of the traceback\\n' * 9000 + 'the reason')"), 20)
    received = error_of(plain(raised.value), "DUT1")
    assert isinstance(received, CommandFailed)
    assert received.stderr.endswith("a frame of the traceback\nthe reason\n")
    assert str(received).endswith("the reason")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_speaks_without_end_is_ended(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_output, "LARGEST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(CsitError, match=r"was ended: it wrote more than 1 MB"):
        completed(["sh", "-c", f"exec cat /dev/zero >/dev/{stream}"], 600)


def test_input_that_is_not_read_is_no_error() -> None:
    assert completed(["true"], 20, stdin=b"x" * (1 << 20)).returncode == 0
    assert len(completed(["cat"], 20, stdin=b"x" * (1 << 20)).stdout) == 1 << 20


def test_deadline_and_missing_program() -> None:
    with pytest.raises(NotReady, match=r"sleep 30 not ready after 0\.1 s; last seen: still running"):
        completed(["sleep", "30"], 0.1)
    with pytest.raises(NotReady, match=r"^a certificate not ready"):
        completed(["sleep", "30"], 0.1, what="a certificate")
    with pytest.raises(CsitError, match=r"^/no/such/program cannot be run: No such file or directory$"):
        completed(["/no/such/program"], 20)


@pytest.mark.slow
def test_of_logs_that_grow_without_end_as_much_is_read_as_is_needed(tmp_path: Path) -> None:
    log = tmp_path / "endless.log"
    with log.open("wb") as file:
        file.write(f"{READY} after 1 s\n".encode())
        file.truncate(8 << 30)  # a hole: as a whole it would not fit into memory
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    console = Console(log)
    assert console.ready and console.tail().endswith("the end")
    assert Daemon("endless", ["true"], log).last_output().endswith("the end")
    console.expect_boot()
    assert not console.ready
    with log.open("ab") as file:
        file.write(READY.encode())
    assert console.ready
