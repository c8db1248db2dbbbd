"""Observation of the noise floor of a node's CPUs."""

import logging
from collections.abc import Collection

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import ON_FIRST_USE, error_text
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.checks.processors import planned_cpus
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.scripts import noise as script

LONGEST_S = script.LONGEST_S
_ROWS: TypeAdapter[tuple[CpuNoise, ...]] = TypeAdapter(tuple[CpuNoise, ...], config=ON_FIRST_USE)
_MORE_S = 30.0
_log = logging.getLogger(__name__)


def data_cpus(there: CpuLayout, node: TgNode | DutNode) -> tuple[int, ...]:
    """Logical CPUs that may have data threads: all of the NUMA node where plans that do not fit share cores."""
    shares = isinstance(node, DutNode) and node.oversubscribe
    every = tuple(sorted(cpu for core in there.cores(node.numa_node) for cpu in core))
    return every if shares else planned_cpus(there, node) or every


def observe(
    connection: Connection,
    cpus: Collection[int],
    duration_s: float,
    *,
    python: str = "python3",
    root: bool = True,
    machine: str | None = None,
) -> tuple[CpuNoise, ...]:
    """Observe idle CPUs, all at the same time. Threads that run there wait meanwhile.

    `duration_s`: At most 10; at most 0.9 where real-time threads are throttled.
    `machine`: The node, for the result; None for the (first) DUT.

    Raises:
        CsitError: The machine cannot be asked, or answers with something else.
    """
    asked = {"cpus": sorted(cpus), "duration_s": duration_s}
    answer = ask(connection, script, asked, python=python, within_s=duration_s + _MORE_S, root=root)
    for cpu, why in answer.get("refused", ()):
        _log.warning("%s: the noise floor of CPU %s is not known: %s", connection.name, cpu, why)
    try:
        return _ROWS.validate_python([{**row, "machine": machine} for row in answer["rows"]])
    except (KeyError, TypeError, ValidationError) as error:
        raise CsitError(f"{connection.name}: the noise floor is not of this version: {error_text(error)}") from error
