"""Results of other tools: result files of FD.io CSIT and JSON of NFVbench, recognized by their content.

Their tests become rows like those of this suite, with their own origin and definitions of NDR, PDR and frame sizes.
Missing values are unknown.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from csit_utils.dataset.foreign_csit import read_csit
from csit_utils.dataset.foreign_nfvbench import read_nfvbench
from csit_utils.dataset.items import Item, Problem, ReadError
from resources.libraries.python.model.bounds import dotted

_CSIT_TEST = {"version", "test_id", "result"}
_CSIT_SUITE = {"version", "suite_id", "start_time"}
_NFVBENCH = {"nfvbench_version", "benchmarks"}


def read_foreign(content: bytes, source: str) -> Iterator[Item] | None:
    """Read the result file of another tool.

    Args:
        content: The file, unpacked.
        source: Its path, for rows and errors.

    Returns:
        Its tests, or one problem with the file. None if it is not JSON, or of no known tool. CSIT's file about a suite
        has no tests.
    """
    try:
        data = from_json(content)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    # The server of NFVbench wraps the output of its command line in `result`.
    inner = data.get("result")
    if data.keys() >= _NFVBENCH:
        return _named(read_nfvbench(data, source), "NFVbench", source)
    if isinstance(inner, dict) and inner.keys() >= _NFVBENCH:
        return _named(read_nfvbench(inner, source), "NFVbench", source)
    if data.keys() >= _CSIT_TEST:
        return _named(read_csit(data, source), "FD.io CSIT", source)
    return iter(()) if data.keys() >= _CSIT_SUITE else None


def _named(items: Iterator[Item], tool: str, source: str) -> Iterator[Item]:
    """Items of a file; only a problem if one of them is invalid."""
    try:
        found = list(items)
    except ReadError as error:
        yield Problem(source, f"{source}: invalid result of {tool}: {error}")
    except ValidationError as error:
        yield Problem(source, f"{source}: invalid result of {tool}: {_first(error)}")
    else:
        yield from found


def _first(error: ValidationError) -> str:
    every: list[Any] = error.errors(include_url=False, include_input=False)
    path = dotted(every[0]["loc"])
    others = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return f"{path}: {every[0]['msg']}{others}"
