"""Energy meters of nodes: which one a node has, and the readings of all of them at the same time."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.energy import MeterSeries
from resources.libraries.python.model.testbed.energy import EnergyMeter, Ipmi, Powercap, Redfish
from resources.libraries.python.model.validation import error_text
from resources.libraries.python.testbed.connection.authentication import resolve
from resources.libraries.python.testbed.node.node_query import ask_all
from resources.libraries.python.testbed.node.redfish import read_redfish
from resources.libraries.python.testbed.node.sent import energy as sent
from resources.libraries.python.testbed.roles.connection import Connection
from resources.libraries.python.testbed.roles.watching import Readings

_MORE_S = 30.0
_READING = ("dcmi", "power", "reading")
_ROWS: TypeAdapter[tuple[MeterSeries, ...]] = TypeAdapter(tuple[MeterSeries, ...])
Reader = Callable[[float], Readings]
"""Reads the meter of one node for some seconds."""


def question(name: str, meter: Powercap | Ipmi) -> dict[str, Any]:
    """Arguments for the program that reads a meter.

    Raises:
        ConfigError: A password that is referred to is not there.
    """
    if isinstance(meter, Powercap):
        return {}
    asked: dict[str, Any] = {"interval_s": meter.interval_s}
    if meter.host is None:
        return {**asked, "ipmi": ["ipmitool", *_READING]}
    command = ["ipmitool", "-I", "lanplus", "-H", meter.host, "-p", str(meter.port)]
    command += ["-C", str(meter.cipher_suite)] if meter.cipher_suite is not None else []
    command += ["-U", meter.user] if meter.user is not None else []
    if meter.password is None:
        return {**asked, "ipmi": [*command, *_READING]}
    secret = resolve(meter.password, f"nodes.{name}.energy").get_secret_value()
    return {**asked, "ipmi": [*command, "-E", *_READING], "environment": {"IPMI_PASSWORD": secret}}


def is_remote(meter: EnergyMeter) -> bool:
    """Whether the controller asks a BMC over the network, and not the node itself."""
    return isinstance(meter, Redfish) or (isinstance(meter, Ipmi) and meter.host is not None)


def read_meter(
    name: str,
    meter: EnergyMeter,
    duration_s: float,
    connection: Connection,
    *,
    python: str = "python3",
    root: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Readings:
    """Read the meter of a node for some time.

    Args:
        name: The node's.
        meter: The topology's.
        duration_s: At most 660.
        connection: The way to the node; to this machine where `is_remote`.
        python: Python on it.
        root: With root's rights, which energy counters need.
        more: Further arguments of the program, such as another tree for tests.

    Raises:
        CsitError: The node or its BMC cannot be asked, or answers with something else.
    """
    if isinstance(meter, Redfish):
        return Readings(read_redfish(name, meter, duration_s))
    asked = {**question(name, meter), "duration_s": duration_s, **(more or {})}
    answers = ask_all(connection, {sent: asked}, python=python, within_s=duration_s + _MORE_S, root=root)
    said = answers.by_program["energy"]
    if "missing" in said:
        return Readings((), {name: str(said["missing"])})
    try:
        rows = _ROWS.validate_python([{**row, "node": name, "meter": meter.meter} for row in said["domains"]])
    except (KeyError, TypeError, ValidationError) as error:
        raise CsitError(f"{name}: the energy meter's answer is not of this version: {error_text(error)}") from error
    offset_s = answers.clock_offset_s
    return Readings([_by_our_clock(row, offset_s) for row in rows])


def _by_our_clock(series: MeterSeries, offset_s: float) -> MeterSeries:
    samples = tuple((at_s - offset_s, value) for at_s, value in series.samples)
    return series.model_copy(update={"samples": samples})


class NodeMeters:
    """Fulfils `roles.watching.EnergyMeters` on nodes.

    Args:
        readers: By node.
    """

    def __init__(self, readers: Mapping[str, Reader]) -> None:
        self._readers = readers
        self._pending: dict[str, Future[Readings]] = {}

    def begin(self, duration_s: float) -> None:
        """Begin to read all meters, at the same time."""
        pool = ThreadPoolExecutor(max(1, len(self._readers)), thread_name_prefix="energy")
        self._pending = {name: pool.submit(reader, duration_s) for name, reader in self._readers.items()}
        pool.shutdown(wait=False)

    def now(self) -> float:
        return time.time()

    def end(self) -> Readings:
        """Wait for all of them. A node that cannot be asked has no meter, for the reason that it gave."""
        pending, self._pending = self._pending, {}
        series: list[MeterSeries] = []
        unmetered: dict[str, str] = {}
        for name, future in pending.items():
            try:
                found = future.result()
            except CsitError as error:
                unmetered[name] = str(error)
                continue
            series += found.series
            unmetered |= found.unmetered
        return Readings(series, unmetered)
