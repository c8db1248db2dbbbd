"""The driver of OTG servers: from a plan and trials to flows on a server, from its metrics to results."""

import importlib
import json
import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from resources.libraries.python.dialogue import record_of
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.otg import SERVERS, Otg, flows
from resources.libraries.python.drivers.generators.overload import SearchedByTrials
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.drivers.host.sockets.limited_adapter import limited_adapter
from resources.libraries.python.errors import CsitError, InUse, Unsupported
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES, LONGEST_REQUEST_S, quoted, quoted_reason
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR

_LOG = logging.getLogger(__name__)
_LONGER_S = 30.0
_POLL_S, _QUIET_S, _SETTLE_S = 0.05, 0.1, 2.0
_CARRIER_POLL_S = 0.2
CONTROLLER = re.sub(r"[^A-Za-z0-9-]+", "-", platform.node())[:63] or "controller"
"""Name of this machine in the names of flows, which OTG allows few characters for."""
_CONNECT_S, _ANSWER_S = 5.0, 60.0
_MAX_BYTES = 1 << 22
"""Of an answer: metrics of 10,000 flows."""
_MAX_OBJECTS = 30_000
"""In an answer: metrics of 10,000 flows, with their latencies and times. snappi takes 0.2 ms for each."""
_MAX_WARNINGS = 10
_MAX_REDIRECTS = 3
_NOT_IMPLEMENTED = frozenset({12, 501})
"""Codes of errors: of gRPC and of HTTP."""
_NO_ANSWER = frozenset({4, 14, 502, 503, 504})
"""The same, where the server itself has not answered: deadlines, connections, proxies."""


class OtgRefusal(CsitError):
    """The server answered, and refused; its words are in the text."""


class _Json:
    """In snappi's place of the module `yaml`."""

    safe_dump = staticmethod(json.dumps)

    @staticmethod
    def safe_load(text: str) -> dict[str, Any]:
        _refuse_many(text.count("{"))
        return record_of(text)


class _BoundedCalls:
    """Calls over gRPC, whose answers have at most `_MAX_OBJECTS`."""

    def __init__(self, stub: Any) -> None:  # noqa: ANN401 - of snappi
        self._stub = stub

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._stub, name)

        def bounded(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - messages of gRPC
            answer = call(*arguments, **options)
            _refuse_many(sum(1 for _ in islice(_messages(answer), _MAX_OBJECTS + 1)))
            return answer

        return bounded


def _messages(message: Any) -> Iterator[Any]:  # noqa: ANN401 - as above
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in (value,) if hasattr(value, "ListFields") else value:
                yield from _messages(each)


def _refuse_many(objects: int) -> None:
    if objects > _MAX_OBJECTS:
        raise CsitError(f"the answer has more than {_MAX_OBJECTS:,} objects")


class OtgClient:
    """One server, by snappi: certificates are checked, answers bounded, errors are one sentence.

    snappi 1.62 checks no certificate over HTTP, whatever its options, and has no timeout; requests pass an adapter that
    adds both. Over gRPC it gets a channel of ours. It reads JSON by PyYAML, in which an answer of 2 kB may have aliases
    for gigabytes; it gets a reader of JSON alone, which takes a small part of the time, too.
    """

    def __init__(self, settings: Otg) -> None:
        """Prepare; nothing is asked yet.

        Raises:
            Unsupported: snappi is not installed.
            ConfigError: The file of certificates cannot be read.
        """
        try:
            self._snappi = importlib.import_module("snappi")
        except ImportError as error:
            raise Unsupported("snappi is not installed: ./csit setup requirements-otg") from error
        self._snappi.snappi.yaml = _Json
        self._location = settings.location.rstrip("/")
        url = urlsplit(self._location)
        # Other readers of it do not end where it is a device or a pipe.
        trusted = content_of(Path(settings.ca_file), LARGEST_INPUT_BYTES) if settings.ca_file else None
        if url.scheme in ("grpc", "grpcs"):
            self._api = self._snappi.api(location=url.netloc, transport="grpc", logger=_LOG, loglevel=logging.ERROR)
            self._api.request_timeout = _ANSWER_S
            self._api._stub = self._stub(url.netloc, trusted, is_encrypted=url.scheme == "grpcs")
            return
        self._api = self._snappi.api(location=self._location, logger=_LOG, loglevel=logging.ERROR)
        session = self._api._transport._session
        session.trust_env, session.max_redirects = False, _MAX_REDIRECTS
        adapter = _adapter((settings.ca_file or True) if settings.verify else False)
        for scheme in ("https://", "http://"):
            session.mount(scheme, adapter)

    def _stub(self, address: str, trusted: bytes | None, *, is_encrypted: bool) -> Any:  # noqa: ANN401 - of snappi
        grpc, calls = importlib.import_module("grpc"), importlib.import_module("snappi.otg_pb2_grpc")
        options = [("grpc.max_receive_message_length", _MAX_BYTES), ("grpc.enable_http_proxy", 0)]
        if not is_encrypted:
            return _BoundedCalls(calls.OpenapiStub(grpc.insecure_channel(address, options)))
        credentials = grpc.ssl_channel_credentials(trusted)
        return _BoundedCalls(calls.OpenapiStub(grpc.secure_channel(address, credentials, options)))

    def version(self) -> str:
        """Return the version of the server, or of its API where it has none."""
        try:
            found = self._ask("version", lambda: _present(self._api.get_version()))
        except Unsupported:  # it answers, and that is what counts
            return "of an unknown version"
        return quoted(str(found.app_version or found.api_spec_version or "of an unknown version"))

    def configure(self, configuration: Mapping[str, object]) -> None:
        config = self._snappi.Config().deserialize(dict(configuration))
        warned = self._ask("configuration", lambda: self._api.set_config(config))
        for text in (getattr(warned, "warnings", None) or ())[:_MAX_WARNINGS]:
            _LOG.warning("%s: %s", self._location, quoted_reason(str(text)))

    def transmit(self, state: str) -> None:
        """`start` or `stop` all flows."""
        control = self._snappi.ControlState()
        control.traffic.flow_transmit.state = state
        self._ask(f"{state} of traffic", lambda: self._api.set_control_state(control))

    def flow_metrics(self) -> dict[str, Any]:
        """Return snappi's `FlowMetric` of all flows by name."""
        request = self._snappi.MetricsRequest()
        request.flow.flow_names = []
        found = self._ask("flow metrics", lambda: _present(self._api.get_metrics(request)))
        return {str(row.name): row for row in found.flow_metrics}

    def ports_down(self) -> list[str]:
        """Return names of configured ports that the server reports as down; none where it reports no links."""
        request = self._snappi.MetricsRequest()
        request.port.port_names = []
        try:
            found = self._ask("port metrics", lambda: _present(self._api.get_metrics(request)))
        except (OtgRefusal, Unsupported) as error:  # then the first trial shows it
            _LOG.debug("%s", error)
            return []
        return [str(row.name) for row in found.port_metrics if row.link == "down"]

    def own_running(self) -> list[str]:
        """Return names of flows that the server sends for this process, or for one of this machine that has ended.

        Raises:
            InUse: It sends flows of another program, of another run, or of a run on another machine.
            CsitError: It is not there, or not trusted.
        """
        try:
            running = [name for name, row in self.flow_metrics().items() if row.transmit == "started"]
        except (OtgRefusal, Unsupported) as error:  # it may not like the question while there are no flows
            _LOG.debug("%s", error)
            running = []
        if others := [(name, user) for name in running if (user := _other_user(name))]:
            (name, user), count = others[0], len(others)
            raise InUse(
                f"OTG server {self._location}: {user} sends there ({count} flow{'s'[count == 1 :]}, such as "
                f"{quoted(name)}); stop it, or wait for its end"
            )
        return running

    def check_counters(self) -> None:
        """Check that the server counts packets of flows, without which there are no results.

        Raises:
            Unsupported: It does not.
        """
        try:
            self.flow_metrics()
        except Unsupported:
            raise
        except CsitError as error:  # as in `own_running`
            _LOG.debug("%s", error)

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - objects of snappi
        """Call snappi.

        Raises:
            Unsupported: The server says that it does not implement this; its words are in the text.
            OtgRefusal: It refuses.
            CsitError: It is not there, not trusted, or its answer is invalid.
        """
        try:
            return call()
        except Exception as error:  # boundary: snappi raises Exception itself, and whatever its parts raise
            answer = self._api.from_exception(error)
            text = "; ".join(map(str, answer.errors)) if answer is not None else str(error)
            reason = quoted_reason(" ".join(text.split()) or type(error).__name__)
            text = f"OTG server {self._location}: {what}: {reason}"
            if answer is not None and answer.code in _NOT_IMPLEMENTED:
                raise Unsupported(f"{text} (not supported by this server)") from error
            if answer is None or answer.code in _NO_ANSWER:
                raise CsitError(text) from error
            raise OtgRefusal(text) from error


def _present(answer: Any) -> Any:  # noqa: ANN401 - objects of snappi
    if answer is None:  # of gRPC, which may leave out what it answers with
        raise CsitError("an empty answer")
    return answer


def _adapter(verify: bool | str) -> Any:  # noqa: ANN401 - of a package without types
    limits = ExitStack()
    if verify is False:  # said by `facts` instead, once
        importlib.import_module("urllib3").disable_warnings()

    class VerifyingAdapter(limited_adapter(limits, LONGEST_REQUEST_S)):  # type: ignore[misc]
        def send(self, request: Any, **_: object) -> Any:  # noqa: ANN401 - as in requests
            request.headers["Connection"] = "close"  # so that the limit of a connection is that of a request
            begun = time.monotonic()
            try:
                with limits:
                    response = super().send(request, stream=True, timeout=(_CONNECT_S, _ANSWER_S), verify=verify)
                    with response:
                        content = response.raw.read(_MAX_BYTES + 1, decode_content=True)
            finally:
                if time.monotonic() - begun >= LONGEST_REQUEST_S:
                    raise OSError(f"no whole answer within {LONGEST_REQUEST_S:g} s")
            if len(content) > _MAX_BYTES:
                raise OSError(f"the answer has more than {_MAX_BYTES:,} bytes")
            response._content, response.encoding = content, "utf-8"
            response.headers["Content-Type"] = "application/json"  # as every answer that is asked for
            return response

    return VerifyingAdapter()


def _other_user(name: str) -> str | None:
    """Say whose flow this is; None where it is of this process, or of one on this machine that has ended."""
    sender = flows.sender_of(name)
    if sender is None:
        return "another program"
    controller, process = sender
    if controller != CONTROLLER:
        return f"a run on {controller}"
    return f"a run with pid {process}" if process != os.getpid() and Path(f"/proc/{process}").exists() else None


def _stopped(running: Sequence[str], settings: Otg) -> str:
    """Say that flows of a server were stopped."""
    return f"stopped {len(running)} flow{'s'[len(running) == 1 :]} of {settings.location}"


def stop_left(servers: Iterable[Otg]) -> list[str]:
    """Stop traffic that a killed run has left on servers; return a sentence for each that sent, or does not answer."""
    sentences = []
    for settings in servers:
        try:
            client = OtgClient(settings)
            running = client.own_running()
            client.transmit("stop")
        except CsitError as error:  # the next run may be of another generator, and this one need not be there any more
            sentences.append(f"could not stop traffic: {error}")
            continue
        if running:
            sentences.append(_stopped(running, settings))
    return sentences


class OtgGenerator(SearchedByTrials):
    """Sends and counts by an OTG server that reaches the generator's ports.

    A trial never stops early. Latency has minimum, mean and maximum.
    """

    def __init__(
        self, plan: Plan, settings: Otg, fabric: Fabric | None = None, machine: MachineLock | None = None
    ) -> None:
        """Prepare.

        `fabric`: Has the generator's ports; started before `start`. None where only the server reaches them.
        `machine`: The lock, held, of the machine that has these ports; None where there is none.
        """
        self._plan, self._fabric, self._machine, self._settings = plan, fabric, machine, settings
        self._ports = flows.server_ports(plan, settings.ports)
        self._client: OtgClient | None = None
        self._version = ""

    def start(self) -> None:
        """Reach the server, stop what this driver has left sending there, and wait until the ports have a carrier.

        Raises:
            Unsupported: snappi is not installed, or the server counts no packets of flows.
            InUse: The server sends flows of another program.
            NotReady: A port gets no carrier.
            CsitError: The server is not there, not trusted, or does not reach the ports.
        """
        client = OtgClient(self._settings)
        self._version = client.version()
        client.own_running()  # flows of another program go on: `stop` does nothing without a client
        if self._machine is not None:
            self._machine.claim(SERVERS, self._settings)
        self._client = client
        if self._fabric is not None:
            self._fabric.wait_for_cables(GENERATOR)
        client.configure(flows.configuration((), self._ports))
        client.check_counters()
        # The other ends have been taken into use just before, and the kernel here knows only ports of this machine.
        wait_until(f"cables of {GENERATOR}", lambda: _down(client), CABLES_WITHIN_S, pause_s=_CARRIER_POLL_S)

    def run(self, trial: Trial) -> TrialResult:
        """Send for the time of a trial, wait until no more packets come, read the metrics.

        Raises:
            Unsupported: An OTG server cannot send that.
            NotReady: Its flows do not end in time.
            CsitError: It refuses, or is gone.
        """
        if self._client is None:
            raise CsitError("the OTG server is not started")
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        sent = flows.sent_flows(
            self._plan.flows, trial, latency=self._settings.latency, sender=f"{CONTROLLER} {os.getpid()}"
        )
        self._client.configure(flows.configuration(sent, self._ports, trial.duration_s))
        self._client.transmit("start")
        found = self._finished(self._client, sent, trial)
        return flows.trial_result(
            trial,
            self._plan.flows,
            sent,
            found,
            started_at=started_at,
            total_duration_s=time.monotonic() - started,
        )

    def _finished(self, client: OtgClient, sent: list[flows.SentFlow], trial: Trial) -> dict[str, flows.OtgFigures]:
        """Figures once flows have stopped and counters no longer move."""
        time.sleep(trial.duration_s)  # nothing is asked meanwhile: the answer would take time of the server's CPU
        found: dict[str, flows.OtgFigures] = {}

        def running() -> str:
            found.update(flows.figures(client.flow_metrics(), sent))
            return ", ".join(name for name, row in found.items() if row.running)

        try:
            wait_until("the end of the OTG server's flows", running, _LONGER_S, pause_s=_POLL_S)
        except CsitError:
            with suppress(CsitError):  # the server may be gone
                client.transmit("stop")
            raise
        changed = begun = time.monotonic()
        while any(row.received < row.sent for row in found.values()):
            now = time.monotonic()
            if now - changed > _QUIET_S or now - begun > _SETTLE_S:
                break
            time.sleep(_POLL_S)
            before = dict(found)
            running()
            changed = time.monotonic() if found != before else changed
        return found

    def facts(self) -> Mapping[str, str]:
        if self._client is None:
            return {}
        return {
            "generator": f"OTG server {self._version}",
            "server": f"{self._settings.location}{'' if self._settings.verify else ', certificate not checked'}",
            "latency": "as the OTG server measures it: minimum, mean and maximum",
        }

    def problems(self) -> tuple[str, ...]:
        if self._client is None:
            return ("the OTG server is not started",)
        try:
            self._client.version()
        except CsitError as error:
            return (str(error),)
        return ()

    def stop(self) -> None:
        """Stop traffic, and take the ports from the server."""
        client, self._client = self._client, None
        if client is not None:
            client.transmit("stop")
            client.configure({})
            if self._machine is not None:
                self._machine.release(SERVERS, [self._settings])


def _down(client: OtgClient) -> str:
    down = client.ports_down()
    return f"{len(down)} without carrier, {quoted(down[0])} among them" if down else ""


def make(node: TgNode, context: DriverContext) -> OtgGenerator:
    """Make the driver for a node."""
    return OtgGenerator(context.plan, node.settings(Otg), context.fabric, context.lock)


class OtgApi:
    """The server of a lab, driven by the controller. Fulfils `roles.part.GeneratorApi`."""

    def __init__(self, node: TgNode) -> None:
        self._node, self._settings = node, node.settings(Otg)

    @property
    def address(self) -> str:
        return self._settings.location.rstrip("/").lower()

    def problems(self) -> tuple[PreflightProblem, ...]:
        return tuple(missing_on(self._node))

    def open(self) -> tuple[str, ...]:
        """Stop what an earlier run has left sending, and try whether the server has the ports.

        Raises:
            Unsupported: It answers, and has not; its words are in the text.
            InUse: It sends flows of another program.
            CsitError: It is not there, or not trusted.
        """
        client = OtgClient(self._settings)
        if running := client.own_running():
            client.transmit("stop")
        ports = {
            name: flows.server_port(name, each.device, self._settings.ports)
            for name, each in self._node.interfaces.items()
        }
        try:
            client.configure(flows.configuration((), ports))
        except OtgRefusal as error:
            raise Unsupported(f"{error}; correct device or otg.ports of {', '.join(ports)}") from error
        client.configure({})
        return (_stopped(running, self._settings),) if running else ()

    def generator(self, plan: Plan) -> OtgGenerator:
        return OtgGenerator(plan, self._settings)


def missing_on(node: TgNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's generator that this machine lacks: snappi, or a server that answers."""
    try:
        client = OtgClient(node.settings(Otg))
    except Unsupported:
        yield PreflightProblem("snappi missing for the generator otg", "install it: ./csit setup requirements-otg")
        return
    except CsitError as error:
        yield PreflightProblem(str(error), "correct otg.ca_file")
        return
    try:
        client.version()
        client.check_counters()
    except Unsupported as error:
        yield PreflightProblem(str(error), "choose a server that counts the packets of flows: results are made of them")
    except CsitError as error:
        yield PreflightProblem(str(error), "start the server, or say where it is by otg.location, verify and ca_file")
