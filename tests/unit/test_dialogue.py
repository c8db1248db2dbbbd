import errno
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import errors
from resources.libraries.python.dialogue import Lines, error_of, line_of, plain
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady

LEAVES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, CsitError) and kind not in (CommandFailed, NotReady)
]


@given(st.lists(st.dictionaries(st.text(), st.text())), st.lists(st.integers(0, 300)))
def test_records_come_out_whole_however_the_pipe_cuts_them(records: list[dict[str, str]], cuts: list[int]) -> None:
    stream = b"".join(map(line_of, records))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    lines = Lines()
    heard = [record for begin, end in pairwise(edges) for record in lines.feed(stream[begin:end])]
    assert heard == records


@pytest.mark.parametrize("said", [b"Welcome to node 7!\n", b"[1, 2]\n", b"{\n"])
def test_what_is_no_dialogue_is_shown(said: bytes) -> None:
    with pytest.raises(CsitError, match="no JSON") as found:
        list(Lines().feed(said))
    assert said.decode().strip() in str(found.value)


def carried(error: BaseException, where: str = "DUT1") -> Exception:
    (record,) = Lines().feed(line_of(plain(error)))
    return error_of(record, where)


@pytest.mark.parametrize("kind", LEAVES)
def test_every_leaf_comes_back_as_it_was(kind: type[CsitError]) -> None:
    back = carried(kind("no port"))
    assert type(back) is kind
    assert str(back) == "DUT1: no port"


def test_a_command_keeps_what_it_was_and_how_it_ended() -> None:
    back = carried(CommandFailed(["ip", "link show"], 2, "no such device\n"))
    assert isinstance(back, CommandFailed)
    assert (back.argv, back.status, back.stderr) == (("ip", "link show"), 2, "no such device\n")
    assert str(back) == "DUT1: ip link show ended with 2: no such device"


def test_what_was_waited_for_keeps_what_was_seen_last() -> None:
    back = carried(NotReady("carrier of p1", 3.0, "down"))
    assert isinstance(back, NotReady)
    assert (back.after_s, back.last_seen) == (3.0, "down")
    assert str(back) == "DUT1: carrier of p1 not ready after 3.0 s; last seen: down"


def test_errors_of_the_system_keep_number_and_file() -> None:
    back = carried(FileNotFoundError(errno.ENOENT, "No such file or directory", "/sys/x"))
    assert isinstance(back, FileNotFoundError)
    assert (back.errno, back.filename) == (errno.ENOENT, "/sys/x")
    assert "DUT1: No such file" in str(back)


def test_a_defect_there_is_a_defect_here() -> None:
    back = carried(KeyError("vswitch"))
    assert type(back) is RuntimeError
    assert str(back) == "DUT1: KeyError: 'vswitch'"
