"""Finding of the doctor about the last-level cache of a node."""

from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python.model.findings.check_finding import CheckFinding, ok, warning
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

_ITEM = "cache"


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Say whether NFs can have ways of their own.

    `answer`: of `cache_facts`.
    """
    del node
    if "why" not in answer:
        text = f"{answer['ways']} ways of the last-level cache can be divided among NFs (CACHE_WAYS)"
        yield ok(place, _ITEM, text)
        return
    text = f"CACHE_WAYS is refused: {answer['why']}"
    yield warning(place, _ITEM, text, answer["fix"]) if answer["fix"] else ok(place, _ITEM, text)
