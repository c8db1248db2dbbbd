"""Network functions as nginx with its stream module, in a network namespace each or in guests."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from socket import IPPROTO_UDP

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import SocketFunctions
from resources.libraries.python.drivers.functions.nginx import OPEN_FILES, ROUTES
from resources.libraries.python.drivers.functions.vm.applications import PLACE, Application, Datagrams
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.rendering import render

NAME = "nginx"
ABOUT = {
    "nginx_balancer": "a session for each datagram, destinations in turns, sources kept",
    "nginx_proxy": "a session for each datagram, destinations in turns, sources its own",
}
"""Handling of a datagram, as a phrase of the facts."""
_MODULES = (Path("/usr/lib/nginx/modules"), Path("/usr/lib64/nginx/modules"))
_MODULE = "ngx_stream_module.so"
_WITHIN_S = 15.0
_BEHIND = 4
"""Addresses that the datagrams of a direction are spread over."""
_CONNECTIONS = OPEN_FILES // 4
"""At a time; a datagram has two, for the moment that it takes to send it on."""
_BUFFER_BYTES = 4 << 20
_TEMPLATE = "nginx-stream.conf.j2"
_TABLE = 100
"""Of routing, for datagrams that nginx is to take in."""


def configuration(function: NfPlan, ports: Sequence[int], *, workers: int, module: str | None) -> str:
    """The configuration file of an NF.

    A balancer keeps the source address and port of a datagram, a proxy sends it on under its own. Both change the
    destination: to one of four addresses in the network that it was sent to, in turns.

    `ports`: UDP ports whose datagrams it takes in; it routes all others past itself.
    `module`: Nginx's stream module as a file; None where it is built in.
    """
    return render(
        _TEMPLATE,
        {
            "name": function.name,
            "module": module,
            "workers": workers,
            "connections": _CONNECTIONS,
            "buffer_bytes": _BUFFER_BYTES,
            "ports": ports,
            "right": [function.right.route.prefix],
            "behind": {
                "forward": _addresses(function.right.route.prefix),
                "reverse": _addresses(function.left.route.prefix),
            },
            "transparent": "nginx_balancer" in (function.kind, function.kind.in_guest),
        },
    )


def _addresses(prefix: str) -> list[str]:
    """The last ones of a network: flows begin with the first."""
    last = IPv4Network(prefix).broadcast_address
    return [str(last - number) for number in range(1, _BEHIND + 1)]


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    path = path_of(NAME)
    if path is None or (stream_module() is None and not _has_stream_built_in(path)):
        lacks = "nginx" if path is None else "nginx's stream module"
        yield PreflightProblem(
            f"{lacks} missing for NFs of kind nginx_balancer and nginx_proxy",
            "install it: apt-get install nginx libnginx-mod-stream",
        )


def stream_module() -> str | None:
    """Path of the stream module; None where it is no file of its own."""
    return next((str(folder / _MODULE) for folder in _MODULES if (folder / _MODULE).exists()), None)


def version() -> str:
    """Return the version, such as `nginx/1.22.1`.

    Raises:
        CsitError: nginx cannot be run.
    """
    return _stderr_of(path_of(NAME) or NAME, "-v").rpartition(" ")[2].strip()


def _has_stream_built_in(path: str) -> bool:
    return "--with-stream" in _stderr_of(path, "-V").split()


def _stderr_of(path: str, option: str) -> str:
    return completed([path, option], _WITHIN_S, check=False).stderr


class NginxProxies(SocketFunctions):
    """NFs that take datagrams in and send them on."""

    _protocol = Protocol.UDP
    _workers = True

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._does = ABOUT[functions[0].kind]

    def argv(self, function: NfPlan, folder: Path) -> list[str]:
        """Listen on the ports of the load, with a worker for each data CPU."""
        file, workers = folder / "nginx.conf", len(self._cores.cpus(function.name))
        text = configuration(function, self._ports, workers=workers, module=stream_module())
        file.write_text(text, encoding="ascii")
        return [NAME, "-p", str(folder), "-c", str(file), "-e", "stderr"]

    def version(self) -> str:
        return version()


def application(function: NfPlan, _: DutNode, vcpus: int) -> Application:
    """Return nginx with its configuration, and the routes by which it gets datagrams."""
    module, file, traffic = stream_module(), "nginx.conf", traffic_profile()
    ports = traffic.load.udp_port, traffic.probes.port
    listening = [f"grep -q ':{port:04X} ' /proc/net/udp" for port in ports]
    workers = f'[ "$(grep -l "^PPid:[[:space:]]*$1\\$" /proc/[0-9]*/status | wc -l)" -ge {vcpus} ]'
    ip = path_of(ROUTES.name) or ROUTES.name
    rules = [
        f"{ip} rule add iif {side.name} ipproto {IPPROTO_UDP} dport {port} lookup {_TABLE}"
        for side in (function.left, function.right)
        for port in ports
    ]
    return Application(
        ABOUT[function.kind.in_guest or function.kind],
        version,
        argv=(NAME, "-p", str(PLACE), "-c", str(PLACE / file), "-e", "stderr"),
        files={file: configuration(function, ports, workers=vcpus, module=module)},
        more=() if module is None else (Path(module),),
        up=" && ".join([*listening, workers]),
        then="\n".join([f"{ip} route add local default dev lo table {_TABLE}", *rules]),
        counts=Datagrams,
    )
