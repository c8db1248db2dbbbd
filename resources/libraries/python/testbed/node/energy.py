"""Energy meters of nodes: which one a node has, and its readings; over Redfish (DSP0268) by sushy."""

import importlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.drivers.host.sockets.limited_adapter import limited_adapter
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import ON_FIRST_USE, error_text
from resources.libraries.python.model.bounds import HIGHEST_READING, LARGEST_ANSWER_BYTES, MAX_NAMES
from resources.libraries.python.model.measurements.energy import MeterSeries
from resources.libraries.python.model.testbed.access import EnergyMeter, Ipmi, Powercap, Redfish
from resources.libraries.python.testbed.connection.authentication import resolve
from resources.libraries.python.testbed.connection.local import or_here
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.node_query import ask_all
from resources.libraries.python.testbed.node.scripts import energy as script
from resources.libraries.python.testbed.roles.watching import Readings

_MORE_S = 30.0
_READING = ("dcmi", "power", "reading")
_ROWS: TypeAdapter[tuple[MeterSeries, ...]] = TypeAdapter(tuple[MeterSeries, ...], config=ON_FIRST_USE)
Reader = Callable[[float, Callable[[], None]], Readings]
"""Reads the meter of one node for some seconds, after a call that says that it is about to."""


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
    secret = resolve(meter.password, meter.host, f"nodes.{name}.energy").get_secret_value()
    return {**asked, "ipmi": [*command, "-E", *_READING], "environment": {"IPMI_PASSWORD": secret}}


def is_remote(meter: EnergyMeter) -> bool:
    """Whether the controller asks a BMC over the network, and not the node itself."""
    return isinstance(meter, Redfish) or (isinstance(meter, Ipmi) and meter.host is not None)


_WITHIN_S = 10.0
"""Of one request."""
_REQUESTS_S = 60.0
"""Maximum duration of all requests together, beyond that of the readings."""
_EVERY_S = 0.5
_MAX_SAMPLES = 1000
_RESOLUTION_W = 1.0


def read_redfish(
    name: str, meter: Redfish, duration_s: float, ready: Callable[[], None] = lambda: None
) -> tuple[MeterSeries, ...]:
    """Read the power of a node's chassis for some time.

    `duration_s`: How long, from the first reading on.
    `ready`: Called when the chassis is known, as the login takes a BMC seconds; returns when it is to be read.

    Raises:
        ConfigError: The password that is referred to is not there.
        Unsupported: sushy is not installed, or the BMC measures no power.
        CsitError: The BMC cannot be asked; the certificate is not trusted, for example.
    """
    where = f"nodes.{name}.energy"
    password = (
        resolve(meter.password, urlsplit(meter.url).hostname or "", where).get_secret_value()
        if meter.password
        else None
    )
    ca_file = None if meter.ca_file is None else Path(meter.ca_file).expanduser()
    if ca_file is not None and not ca_file.is_file():
        raise CsitError(f"{where}.ca_file: no such file: {meter.ca_file}")
    try:
        sushy = importlib.import_module("sushy")
    except ImportError as error:
        raise Unsupported(f"{where}: sushy is not installed: ./csit setup requirements-redfish") from error
    limits = ExitStack()
    try:
        url = meter.url.rstrip("/")
        connector = sushy.connector.Connector(
            url,
            verify=True if ca_file is None else str(ca_file),
            default_request_timeout=_WITHIN_S,
            connect_timeout=_WITHIN_S,
            server_side_retries=1,
            server_side_retries_delay=1,
        )
        connector._session.hooks["response"].append(_Bounded(duration_s + _REQUESTS_S))
        for scheme in ("https://", "http://"):
            connector._session.mount(scheme, limited_adapter(limits, duration_s + _REQUESTS_S)())
        root = sushy.Sushy(url, username=meter.user, password=password, connector=connector)
        read = _reader(root.get_chassis(meter.chassis and f"/redfish/v1/Chassis/{meter.chassis}"), where)
        ready()
        samples = _sampled(read, duration_s, min(_EVERY_S, meter.interval_s))
    except CsitError:
        raise
    except Exception as error:  # boundary: sushy raises whatever answers of another form lead to in its code
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CsitError(f"{where}: {meter.url}: {reason}") from error
    finally:
        limits.close()
    return (
        MeterSeries(
            node=name,
            meter=meter.meter,
            domain="system",
            counts=True,
            quantity="power",
            samples=samples,
            resolution=_RESOLUTION_W,
            interval_s=meter.interval_s,
        ),
    )


class _Bounded:
    """Reads the bodies of answers, which requests would do without bounds.

    `most_s`: Of all requests from now on.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._end_s = time.monotonic() + most_s

    def __call__(self, response: Any, *_: object, **__: object) -> None:  # noqa: ANN401 - requests has no types here
        """Read one body.

        Raises:
            OSError: It is too large, or takes too long; or all requests together do.
        """
        end_s, body = time.monotonic() + _WITHIN_S, bytearray()
        for piece in response.iter_content(1 << 14):
            body += piece
            if len(body) > LARGEST_ANSWER_BYTES or time.monotonic() > end_s:
                response.close()
                raise OSError(f"an answer of more than {LARGEST_ANSWER_BYTES:,} bytes, or {_WITHIN_S:.0f} s long")
        if time.monotonic() > self._end_s:
            raise OSError(f"the BMC did not end within {self._most_s:g} s")
        response._content = bytes(body)


def _sampled(read: Callable[[], float], duration_s: float, every_s: float) -> tuple[tuple[float, float], ...]:
    samples = []
    every_s = max(every_s, duration_s / _MAX_SAMPLES)
    end_s = time.monotonic() + duration_s
    while True:
        begin_s = time.monotonic()
        samples.append((time.time(), read()))
        if begin_s >= end_s:
            return tuple(samples)
        time.sleep(max(0.0, min(begin_s + every_s, end_s) - time.monotonic()))


def _reader(chassis: Any, where: str) -> Callable[[], float]:  # noqa: ANN401 - sushy has no types
    """Return what reads the power: from the resource EnvironmentMetrics, or from Power, which came before it.

    Raises:
        Unsupported: The chassis has neither.
    """
    connector = chassis._conn
    found = [(link, chassis.json.get(link)) for link in ("EnvironmentMetrics", "Power")]
    links = [(link, each.get("@odata.id")) for link, each in found if isinstance(each, dict)]
    for link, path in links:
        if path and power_of(link, connector.get(path).json()) is not None:

            def read(link: str = link, path: str = path) -> float:
                watts = power_of(link, connector.get(path).json())
                if watts is None:
                    raise Unsupported(f"{where}: {path} has no power any more")
                return watts

            return read
    raise Unsupported(f"{where}: chassis {chassis.identity} has no power in EnvironmentMetrics or Power")


def power_of(link: str, document: dict[str, Any]) -> float | None:
    """Return the watts in a resource; None where it has none.

    `link`: `EnvironmentMetrics` (PowerWatts) or `Power` (PowerControl, whose members add up).
    """
    try:
        if link == "EnvironmentMetrics":
            watts = float(document["PowerWatts"]["Reading"])
        else:
            watts = float(sum(row["PowerConsumedWatts"] for row in document["PowerControl"][:MAX_NAMES]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    # NaN is in no range.
    return watts if 0 <= watts <= HIGHEST_READING and (watts or link == "EnvironmentMetrics") else None


def read_meter(
    name: str,
    meter: EnergyMeter,
    duration_s: float,
    connection: Connection | None,
    *,
    python: str = "python3",
    root: bool = True,
    more: Mapping[str, Any] | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Readings:
    """Read the meter of a node for some time.

    `connection`: The way to the node; None for this machine, from which a meter that `is_remote` is read anyway.
    `more`: Further arguments of the program, such as another tree for tests.
    `ready`: Called when a meter can be read; returns when it is to be. A program on a node begins within a second.

    Raises:
        CsitError: The node or its BMC cannot be asked, or answers with something else.
    """
    if isinstance(meter, Redfish):
        return Readings(read_redfish(name, meter, duration_s, ready))
    ready()
    asked = {**question(name, meter), "duration_s": duration_s, **(more or {})}
    with or_here(None if is_remote(meter) else connection, python) as (way, its_python):
        answers = ask_all(way, {script: asked}, python=its_python, within_s=duration_s + _MORE_S, root=root)
    answer = answers.by_program["energy"]
    if "missing" in answer:
        return Readings((), {name: str(answer["missing"])})
    try:
        rows = _ROWS.validate_python([{**row, "node": name, "meter": meter.meter} for row in answer["domains"]])
    except (KeyError, TypeError, ValidationError) as error:
        raise CsitError(f"{name}: the energy meter's answer is not of this version: {error_text(error)}") from error
    offset_s = answers.clock_offset_s
    return Readings([_by_our_clock(row, offset_s) for row in rows])


def _by_our_clock(series: MeterSeries, offset_s: float) -> MeterSeries:
    samples = tuple((at_s - offset_s, value) for at_s, value in series.samples)
    return series.model_copy(update={"samples": samples})


class NodeMeters:
    """Fulfils `roles.watching.EnergyMeters` on nodes."""

    def __init__(self, readers: Mapping[str, Reader]) -> None:
        self._readers = readers
        self._pending: dict[str, Future[Readings]] = {}

    def begin(self, duration_s: float) -> None:
        """Begin to read all meters at the same time, when all are ready or have failed."""
        pool = ThreadPoolExecutor(max(1, len(self._readers)), thread_name_prefix="energy")
        ready = {name: threading.Event() for name in self._readers}
        begin = threading.Event()

        def read(name: str) -> Readings:
            def is_ready() -> None:
                ready[name].set()
                begin.wait()

            try:
                return self._readers[name](duration_s, is_ready)
            finally:
                ready[name].set()

        self._pending = {name: pool.submit(read, name) for name in self._readers}
        pool.shutdown(wait=False)
        try:
            for each in ready.values():
                each.wait()
        finally:
            begin.set()

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
