"""Network functions as nginx with its stream module, in a network namespace each or in guests."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from socket import IPPROTO_UDP

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import ProgramFunctions, passed_by
from resources.libraries.python.drivers.functions.nginx import program
from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.drivers.functions.nginx.program import configuration, ports
from resources.libraries.python.drivers.functions.nginx.registration import ROUTES
from resources.libraries.python.drivers.functions.vm_application.applications import PLACE, Application, Datagrams
from resources.libraries.python.drivers.host.links.routing import configure_routers, deliver_locally
from resources.libraries.python.drivers.host.programs.program_paths import path_of
from resources.libraries.python.drivers.host.sockets.listeners import udp_ports
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.testbed.nodes import DutNode

_READY_S = 15.0


class NginxProxies(ProgramFunctions[NfPlan]):
    """NFs that take datagrams in and send them on."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._cores = context.plan.cores
        self._traffic = traffic_profile()
        self._version = ""

    def start(self) -> None:
        """Start all of them, and wait until each listens; then let datagrams come.

        Raises:
            Unsupported: There is no nginx.
            CsitError: One ended; the text has its last words.
            NotReady: One does not listen in time.
        """
        path = path_of(program.NAME)
        if path is None:
            raise Unsupported("; ".join(map(str, program.missing())))
        self._version = program.version()
        wanted = ports(self._traffic)
        for function in self._functions:
            folder = self._companions.folder / function.name
            folder.mkdir()
            file = folder / "nginx.conf"
            workers = len(self._cores.cpus(function.name))
            file.write_text(
                configuration(function, self._traffic, workers=workers, module=program.module()), encoding="ascii"
            )
            self._companions.start(function.name, [path, "-p", str(folder), "-c", str(file), "-e", "stderr"])
        for function in self._functions:
            self._companions.wait_for(
                function.name,
                f"listening on UDP ports {wanted}",
                lambda function=function: self._not_ready(function, wanted),  # type: ignore[misc]
                _READY_S,
            )
            self._fabric.change(function.name, deliver_locally((function.left.name, function.right.name), wanted))
        configure_routers(self._functions, self._fabric)

    def _not_ready(self, function: NfPlan, wanted: Sequence[int]) -> str:
        there = self._fabric.run_inside(function.name, udp_ports)
        if lacking := [port for port in wanted if port not in there]:
            return f"no listener on {lacking}"
        started = self._companions.adopt_children(function.name)
        workers = len(self._cores.cpus(function.name))
        return "" if started >= workers else f"{started} of {workers} workers are there"

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Datagrams that each sent on, and that came for it and were lost in its queue or had no session.

        Raises:
            CsitError: The kernel does not report it.
        """
        return {name: self._processed(name)[0] for name in self._owners}

    def _processed(self, name: str) -> tuple[ProcessedPackets, int]:
        """And all that came for it."""
        return program.counted(self._fabric.run_inside(name, _udp_counters))

    def facts(self) -> Mapping[str, str]:
        """Its version, and what becomes of a datagram."""
        kind = next((function.kind for function in self._functions), None)
        return {kind: f"{self._version}, {program.ABOUT[kind]}"} if kind is not None and self._version else {}

    def problems(self) -> tuple[str, ...]:
        """Programs that have ended or moved, ports without thread or carrier, packets that passed nginx by."""
        return super().problems() or tuple(self._passed_by())

    def _passed_by(self) -> Iterator[str]:
        wanted = " and ".join(map(str, ports(self._traffic)))
        for name in self._owners:
            received, came = self._received(name), self._processed(name)[1]
            if passed_by(came, received):
                yield f"{name} received {received:,} packets, and only {came:,} were UDP datagrams to ports {wanted}"


def _udp_counters() -> str:
    """The kernel's counters of the calling thread's namespace."""
    return Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")


_TABLE = 100
"""Of routing, for datagrams that nginx is to take in."""


def application(function: NfPlan, _: DutNode, vcpus: int) -> Application:
    """Return nginx with its configuration, and the routes by which it gets datagrams."""
    traffic, module, file = traffic_profile(), nginx.module(), "nginx.conf"
    listening = [f"grep -q ':{port:04X} ' /proc/net/udp" for port in ports(traffic)]
    workers = f'[ "$(grep -l "^PPid:[[:space:]]*$1\\$" /proc/[0-9]*/status | wc -l)" -ge {vcpus} ]'
    ip = path_of(ROUTES.name) or ROUTES.name
    rules = [
        f"{ip} rule add iif {side.name} ipproto {IPPROTO_UDP} dport {port} lookup {_TABLE}"
        for side in (function.left, function.right)
        for port in ports(traffic)
    ]
    return Application(
        nginx.ABOUT[function.kind.in_guest or function.kind],
        nginx.version,
        argv=(nginx.NAME, "-p", str(PLACE), "-c", str(PLACE / file), "-e", "stderr"),
        files={file: configuration(function, traffic, workers=vcpus, module=module)},
        more=() if module is None else (Path(module),),
        up=" && ".join([*listening, workers]),
        then="\n".join([f"{ip} route add local default dev lo table {_TABLE}", *rules]),
        counts=Datagrams,
    )
