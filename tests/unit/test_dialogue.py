import os
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import dialogue, errors
from resources.libraries.python.dialogue import (
    LONGEST_ERROR,
    JsonLines,
    JsonPipe,
    RemoteDefect,
    error_of,
    line_of,
    plain,
)
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
    lines = JsonLines()
    heard = [record for begin, end in pairwise(edges) for record in lines.feed(stream[begin:end])]
    assert heard == records


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        (b"Welcome to \x1b[2J!", "Welcome to \\x1b[2J!"), (b"[1, 2]", "[1, 2]"), (b'{"a":' * 100_000, '{"a":'),
        (b'{"a": ' + b"9" * 5000 + b"}", "999"), (b"\xff\xfe", ""), (b"", "nothing"),
    ],
)  # fmt: skip
def test_what_is_no_dialogue_is_quoted_and_not_at_length(said: bytes, quoted: str) -> None:
    with pytest.raises(CsitError, match="no JSON") as found:
        list(JsonLines().feed(said + b"\n"))
    assert quoted in str(found.value) and len(str(found.value)) < 300


@pytest.mark.slow
def test_a_line_without_end_takes_time_in_proportion_to_its_length() -> None:
    lines = JsonLines()
    begin = time.process_time()
    for _ in range(300_000):
        list(lines.feed(b"x" * 10))  # 450 GB would be copied if each piece copied those before it
    assert time.process_time() - begin < 20
    with pytest.raises(CsitError, match="no JSON: xxx"):
        list(lines.feed(b"\n"))


def test_a_line_may_have_so_many_bytes_and_values_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "MAX_VALUES", 2000)
    for value in (b"[]", b"{}", b'""'):
        few, many = (b'{"a":[' + b",".join([value] * number) + b"]}\n" for number in (900, 2500))
        assert len(next(JsonLines().feed(few))["a"]) == 900
        with pytest.raises(CsitError, match="at most 2,000"):
            list(JsonLines().feed(many))
    lines = JsonLines(most_bytes=12)
    assert list(lines.feed(b'{"a":"1234"}\n')) == [{"a": "1234"}]
    assert not list(lines.feed(b'{"a":"12'))
    with pytest.raises(CsitError, match=r"a line of more than 12 bytes, which begins with {\"a\":\"12"):
        list(lines.feed(b'345"}'))


def test_a_process_hears_records_one_by_one_until_the_end() -> None:
    (near, far), (back, sink) = os.pipe(), os.pipe()
    pipe = JsonPipe(near, sink)
    assert not pipe.has_input()
    os.write(far, b'{"a":1}\n{"b":2}\n')
    assert pipe.hear() == {"a": 1}
    assert pipe.has_input()
    assert pipe.hear() == {"b": 2}
    os.close(far)
    assert pipe.hear() is None
    pipe.fail(NotReady("carrier", 1.0, "down"))
    (record,) = JsonLines().feed(os.read(back, 1000))
    assert str(error_of(record["error"])) == "carrier not ready after 1.0 s; last seen: down"
    for descriptor in (near, back, sink):
        os.close(descriptor)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
CLASSES = st.sampled_from([*(kind.__name__ for kind in LEAVES), "CommandFailed", "NotReady", "OSError", "Sequence"])
KEYS = ("class", "text", "argv", "status", "stderr", "what", "after_s", "last_seen", "number", "file", "defect")


@given(VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES), CLASSES | VALUES)
def test_any_record_of_an_error_is_an_error(record: object, kind: object) -> None:
    if isinstance(record, dict):
        record = {"class": kind, **record}
    error = error_of(record, "DUT1")
    assert str(error).startswith("DUT1") or isinstance(error, OSError)


@pytest.mark.parametrize("kind", ["NotReady", "CommandFailed", "OSError", "c" * 100_000])
def test_a_text_that_no_driver_writes_is_cut(kind: str) -> None:
    texts = dict.fromkeys(("text", "stderr", "what", "last_seen", "file"), "x" * 100_000)
    record = {
        "class": kind,
        **texts,
        "argv": ["x" * 5000, *map(str, range(200))],
        "status": 1,
        "after_s": 1.0,
        "number": 2,
    }
    assert len(str(error_of(record, "DUT1"))) < 3 * LONGEST_ERROR


def carried(error: BaseException, where: str = "DUT1") -> Exception:
    (record,) = JsonLines().feed(line_of(plain(error)))
    return error_of(record, where)


SIGNALS = {9: "SIGKILL", 37: "signal 37", 10**9: "sig"}


def ip(status: int) -> CommandFailed:
    return CommandFailed(["ip", "link show"], status, "no\n")


@pytest.mark.parametrize(
    ("error", "keeps", "text"),
    [
        *((kind("no port"), {}, "DUT1: no port") for kind in LEAVES),
        (ip(2), {"argv": ("ip", "link show"), "status": 2, "stderr": "no\n"}, "DUT1: ip link show ended with 2: no"),
        *((ip(-at), {"status": -at}, f"DUT1: ip link show was killed by {end}") for at, end in SIGNALS.items()),
        (NotReady("p1", 3.0, "down"), {"after_s": 3.0, "last_seen": "down"}, "DUT1: p1 not ready after 3.0 s; last se"),
        (FileNotFoundError(2, "gone", "/sys/x"), {"errno": 2, "filename": "/sys/x"}, "[Errno 2] DUT1: gone"),
    ],
    ids=repr,
)
def test_an_error_comes_back_as_it_was(error: Exception, keeps: dict[str, object], text: str) -> None:
    back = carried(error)
    assert type(back) is type(error)
    assert {name: getattr(back, name) for name in keeps} == keeps
    assert str(back).startswith(text)


def test_a_defect_there_is_a_defect_here() -> None:
    back = carried(KeyError("vswitch"))
    assert type(back) is RemoteDefect
    assert str(back) == "DUT1: KeyError: 'vswitch'"
    assert back.__notes__[0].startswith("DUT1: ") and "KeyError: 'vswitch'" in back.__notes__[0]
