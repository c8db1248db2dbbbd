"""The announcement of a program's start, among anything that comes before it on the error output."""

import time

import pytest

from resources.libraries.python.errors import ConnectionFailed
from resources.libraries.python.testbed.connection.program import TAIL_BYTES
from tests.unit.testbed.connection.scripted_streams import TOKEN, started


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_announcement_is_found_however_the_pipe_cuts_it(size: int) -> None:
    text = f"Welcome!\n{TOKEN} 1234\na warning\n".encode()
    with started(*(text[at : at + size] for at in range(0, len(text), size))) as (program, killed):
        while "warning\n" not in program.stderr_tail():
            time.sleep(0.01)
        assert program.stderr_tail() == "Welcome!\na warning\n"
    assert killed == [1234]


@pytest.mark.slow
def test_a_flood_before_the_start_takes_neither_time_nor_memory() -> None:
    begin = time.process_time()
    flood = [b"x" * 65_536] * 500 + [b"y\n" * 5000] * 100
    with started(*flood, f"\n{TOKEN} 1234\n".encode()) as (program, _):
        assert len(program.stderr_tail()) <= 2 * TAIL_BYTES
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("line", [f"{TOKEN}\n", f"{TOKEN} what\n", f"{TOKEN} {'9' * 5000}\n", f"{TOKEN} \xff\n"])
def test_a_line_that_begins_like_an_announcement_is_output(line: str) -> None:
    with started(line.encode("latin-1"), f"{TOKEN} 1234\n".encode()) as (_, killed):
        pass
    assert killed == [1234]


def test_an_error_output_that_ends_without_it_is_an_unknown_start() -> None:
    with pytest.raises(ConnectionFailed, match="whether agent was started is not known"), started(b"no\n", b""):
        pass
