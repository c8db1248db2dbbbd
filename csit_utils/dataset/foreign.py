"""Results of other tools: FD.io CSIT's own result files and NFVbench's JSON, told by their content.

What such a file says becomes a row as ours are, with its own origin and its own definitions of NDR, PDR and frame
sizes. What it does not say stays unknown.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from csit_utils.dataset.foreign_csit import read_csit
from csit_utils.dataset.foreign_nfvbench import read_nfvbench
from csit_utils.dataset.items import Item, Problem, ReadError

_CSIT_TEST = {"version", "test_id", "result"}
_CSIT_SUITE = {"version", "suite_id", "start_time"}
_NFVBENCH = {"nfvbench_version", "benchmarks"}


def read_foreign(content: bytes, source: str) -> Iterator[Item] | None:
    """Read the result file of another tool.

    Args:
        content: The file, unpacked.
        source: Its path, for the rows and for what is wrong with it.

    Returns:
        Its tests, or one problem that names the file. None where it is no JSON or of none of the known tools; the
        caller then says what it is not. A file of CSIT about a suite has no tests in it.
    """
    try:
        data = from_json(content)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    # The server of NFVbench wraps in `result` what its command line writes.
    inner = data.get("result")
    if data.keys() >= _NFVBENCH:
        return _named(read_nfvbench(data, source), "NFVbench", source)
    if isinstance(inner, dict) and inner.keys() >= _NFVBENCH:
        return _named(read_nfvbench(inner, source), "NFVbench", source)
    if data.keys() >= _CSIT_TEST:
        return _named(read_csit(data, source), "FD.io CSIT", source)
    return iter(()) if data.keys() >= _CSIT_SUITE else None


def _named(items: Iterator[Item], tool: str, source: str) -> Iterator[Item]:
    """The items of a file; all of them or, where one is not valid, a problem alone."""
    try:
        found = list(items)
    except ReadError as error:
        yield Problem(source, f"{source}: this is no result of {tool} that can be read: {error}")
    except ValidationError as error:
        yield Problem(source, f"{source}: this is no result of {tool} that can be read: {_first(error)}")
    else:
        yield from found


def _first(error: ValidationError) -> str:
    every: list[Any] = error.errors(include_url=False, include_input=False)
    path = ".".join(map(str, every[0]["loc"]))
    others = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return f"{path}: {every[0]['msg']}{others}"
