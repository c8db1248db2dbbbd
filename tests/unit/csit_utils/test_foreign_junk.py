"""Files of other tools that are damaged: no reader ever raises, whatever stands at whichever place."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from tests.unit.csit_utils.foreign_files import at_load, csit, csit_ndrpdr, fixed, nfvbench, packed, trials

SOURCE = "/data/run-7/result.json"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe{}",
        b"null",
        b"[1, 2]",
        b'"text"',
        b'{"schema_version": 3}',
        b'{"test_id": 1}',
        b'{"version": "1.5.1", "test_id": "tests.a"}',
        b"<robot/>",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_of_no_known_tool_is_left_to_the_caller(content: bytes) -> None:
    assert read_foreign(content, SOURCE) is None


def test_deep_nesting_inside_a_known_file_is_not_followed() -> None:
    """It is refused as JSON already; nothing overflows."""
    content = packed(csit(csit_ndrpdr()))[:-1] + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert read_foreign(content, SOURCE) is None


JUNK: tuple[Any, ...] = (None, True, -1, 10**400, float("nan"), "x" * 2000, "\ud800", [[]], {"value": {}})


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a file; of a list the first."""
    children = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for key, value in children:
        yield (*path, key)
        yield from leaves(value, (*path, key))


IDLE = {"pdr_0": {"min": 5, "avg": 12, "max": 90, "hdrh": "", "unit": "us"}}
CSIT_FILE = csit(csit_ndrpdr(latency_forward=IDLE, latency_reverse={}))
NDR = at_load(1e6, 10.0, 0.0)
NDR["stats"]["overall"]["hdrh"] = ""
NFVBENCH_FILE = nfvbench({"64": {"ndr": NDR, "iteration_stats": trials((9e6, 1.0)), **fixed(200.0)}})


@pytest.mark.parametrize(
    "whole", [CSIT_FILE, pytest.param(NFVBENCH_FILE, marks=pytest.mark.slow)], ids=["csit", "nfvbench"]
)
def test_junk_at_any_place_gives_tests_or_one_problem(whole: Any) -> None:
    """A reader never raises, and a file with a problem gives no half of its tests."""
    for path in leaves(whole):
        for junk in JUNK:
            data = deepcopy(whole)
            place = data
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = junk
            items = list(read_foreign(packed(data), SOURCE) or ())
            kinds = {type(item) for item in items}
            assert kinds <= {ImportedTest} or (kinds == {Problem} and len(items) == 1), (path, junk)
