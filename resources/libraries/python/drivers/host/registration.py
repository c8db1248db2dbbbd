"""Declarations about Linux: leftovers of a divided cache and of SMT that is off, and checks of caches and cores."""

from collections.abc import Mapping
from typing import Any

from resources.libraries.python.model.driver import Leftover, NodeCheck
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

_PACKAGE = "resources.libraries.python.drivers.host.cpu"


def _of_dut(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    return {} if isinstance(node, DutNode) else None


def _of_any(_: TgNode | DutNode) -> Mapping[str, Any]:
    return {}


LEFTOVERS = (
    Leftover(
        key="cache",
        label="last-level cache",
        entry=f"{_PACKAGE}.resctrl:DividedCache",
        remove=f"{_PACKAGE}.resctrl:remove",
    ),
    Leftover(key="smt", label="SMT", entry=f"{_PACKAGE}.smt:SmtSwitchedOff", remove=f"{_PACKAGE}.smt:remove"),
)
CHECKS = (
    NodeCheck(script=f"{_PACKAGE}.cache_facts", arguments=_of_dut, check=f"{_PACKAGE}.resctrl:check"),
    NodeCheck(script=f"{_PACKAGE}.core_facts", arguments=_of_any, check=f"{_PACKAGE}.cpu:check"),
)
