"""OTG's HTTP API: requests to what they do, and errors to OTG's own form."""

import json
import logging
import queue
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from resources.libraries.python.defects import report_defect
from resources.libraries.python.drivers.generators.otg.server.schema import (
    API_VERSION,
    ControlState,
    MetricsRequest,
    OtgConfig,
    parse,
)
from resources.libraries.python.drivers.generators.otg.server.traffic import Traffic
from resources.libraries.python.drivers.host.programs.waiting import next_item
from resources.libraries.python.drivers.host.sockets.time_limit import shut_down_after
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES, LONGEST_REQUEST_S, quoted

_LOG = logging.getLogger(__name__)
_IDLE_S = 10.0
_ANSWER_S = 60.0
_MOST_CONNECTIONS = 16
Answer = tuple[int, dict[str, Any]]


def answer(traffic: Traffic, method: str, path: str, body: bytes) -> Answer:
    """Do what a request asks for.

    Args:
        traffic: Ports and flows.
        method: Such as `POST`.
        path: Such as `/config`.
        body: Of the request.

    Returns:
        HTTP status, and the object of the answer: for errors OTG's `Error`.
    """
    try:
        return 200, _done(traffic, f"{method} {path}", body)
    except Unsupported as error:
        return _error(501, "validation", str(error))
    except ConfigError as error:
        return _error(400, "validation", str(error))
    except CsitError as error:
        return _error(500, "internal", str(error))


def _done(traffic: Traffic, request: str, body: bytes) -> dict[str, Any]:
    match request:
        case "GET /capabilities/version":
            return {"api_spec_version": API_VERSION, "sdk_version": "", "app_version": API_VERSION}
        case "POST /config":
            return {"warnings": traffic.configure(parse(body, OtgConfig), json.loads(body))}
        case "GET /config":
            return traffic.given
        case "POST /control/state":
            return {"warnings": _control(traffic, parse(body, ControlState))}
        case "POST /monitor/metrics":
            return _metrics(traffic, parse(body, MetricsRequest))
    raise Unsupported(f"{quoted(request)}: not supported by this server")


def _error(status: int, kind: str, text: str) -> Answer:
    return status, {"code": status, "kind": kind, "errors": [text]}


def _control(traffic: Traffic, state: ControlState) -> list[str]:
    if state.protocol is not None:
        return ["protocol: ignored, this server has no protocols"]
    if state.traffic is None:
        raise ConfigError("traffic.flow_transmit is missing")
    transmit = state.traffic.flow_transmit
    (traffic.start if transmit.state == "start" else traffic.stop)(transmit.flow_names)
    return []


def _metrics(traffic: Traffic, request: MetricsRequest) -> dict[str, Any]:
    if request.chosen == "flow":
        names, columns = (request.flow.flow_names, request.flow.metric_names) if request.flow else ((), ())
        kind, rows = "flow_metrics", traffic.flow_metrics(names)
    else:
        names, columns = (request.port.port_names, request.port.column_names) if request.port else ((), ())
        kind, rows = "port_metrics", traffic.port_metrics(names)
    wanted = {"name", *columns}
    return {"choice": kind, kind: [_only(row, wanted) if columns else row for row in rows]}


def _only(row: Mapping[str, object], wanted: set[str]) -> dict[str, object]:
    return {key: value for key, value in row.items() if key in wanted}


class _Server(ThreadingHTTPServer):
    """Reads requests in threads, at most 16 at a time; another thread does what they ask for, one after the other."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None) -> None:
        super().__init__(address, _Handler)
        self.asked: queue.Queue[tuple[tuple[str, str, bytes], Future[Answer]]] = queue.Queue()
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._context = context

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in socketserver
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in socketserver
        try:
            with shut_down_after(request, LONGEST_REQUEST_S):
                request.settimeout(_IDLE_S)
                if self._context is not None:
                    request = self._context.wrap_socket(request, server_side=True)
                super().process_request_thread(request, client_address)
        except OSError as error:  # a handshake that failed
            _LOG.debug("%s: %s", client_address, error)
            self.shutdown_request(request)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - as in socketserver
        _LOG.debug("connection of %s ended", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _IDLE_S
    server_version = "csit-otg"

    def _respond(self) -> None:
        # Without it, headers that were cut short would look like a request without a body.
        length = self.headers.get("Content-Length", "0" if self.command == "GET" else "")
        if not (length.isascii() and length.isdigit() and len(length) < 10) or int(length) > LARGEST_INPUT_BYTES:
            status, found = _error(
                413, "validation", f"Content-Length: {quoted(length)}: expected 0 to {LARGEST_INPUT_BYTES:,}"
            )
        else:
            body = self.rfile.read(int(length))
            if len(body) < int(length):  # the client has gone, or was too slow
                return
            asked = (self.command, self.path, body)
            done: Future[Answer] = Future()
            self.server.asked.put((asked, done))
            status, found = done.result(_ANSWER_S)
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _respond

    def log_message(self, format: str, *args: object) -> None:
        _LOG.info(format, *args)


@contextmanager
def listening(address: tuple[str, int], context: ssl.SSLContext | None = None) -> Iterator[_Server]:
    """Listen for requests, which wait in the server's queue.

    Raises:
        CsitError: The address cannot be listened at.
    """
    try:
        server = _Server(address, context)
    except (OSError, OverflowError) as error:
        raise CsitError(f"{address[0]}:{address[1]}: cannot be listened at: {error}") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def serve(server: _Server, traffic: Traffic) -> None:
    """Do what requests ask for in this thread, until it is interrupted."""
    work: Callable[..., Answer] = answer
    while True:
        asked, done = next_item(server.asked)
        try:
            done.set_result(work(traffic, *asked))
        except Exception as error:  # boundary: a defect is answered, and the server goes on
            _LOG.error(reason := report_defect(error))
            done.set_result(_error(500, "internal", reason))
