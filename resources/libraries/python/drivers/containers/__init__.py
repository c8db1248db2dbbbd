"""Containers of network functions: Podman and Docker."""

from collections.abc import Mapping
from typing import Any

from resources.libraries.python.model.driver import Leftover, NodeCheck
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

CONTAINERS = "containers"
ENGINES = ("podman", "docker")
"""In the order in which `auto` tries them."""
_PACKAGE = "resources.libraries.python.drivers.containers"


def _wanted(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    return {} if isinstance(node, DutNode) and node.container.engine != "none" else None


LEFTOVERS = (
    Leftover(
        key=CONTAINERS, entry=f"{_PACKAGE}.container_cleanup:Contained", remove=f"{_PACKAGE}.container_cleanup:remove"
    ),
)
CHECKS = (NodeCheck(script=f"{_PACKAGE}.container_facts", arguments=_wanted, check=f"{_PACKAGE}.engine_choice:check"),)
