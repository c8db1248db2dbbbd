"""Network functions as nginx with its stream module, in a network namespace each or in guests."""

from collections.abc import Sequence
from pathlib import Path
from socket import IPPROTO_UDP

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import SocketFunctions
from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.drivers.functions.nginx.program import configuration
from resources.libraries.python.drivers.functions.nginx.registration import ROUTES
from resources.libraries.python.drivers.functions.vm_application.applications import PLACE, Application, Datagrams
from resources.libraries.python.drivers.host.programs.program_paths import path_of
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import DutNode


class NginxProxies(SocketFunctions):
    """NFs that take datagrams in and send them on."""

    _protocol = Protocol.UDP
    _workers = True

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._does = nginx.ABOUT[functions[0].kind]

    def argv(self, function: NfPlan, folder: Path) -> list[str]:
        """Listen on the ports of the load, with a worker for each data CPU."""
        file, workers = folder / "nginx.conf", len(self._cores.cpus(function.name))
        text = configuration(function, self._ports, workers=workers, module=nginx.module())
        file.write_text(text, encoding="ascii")
        return [nginx.NAME, "-p", str(folder), "-c", str(file), "-e", "stderr"]

    def version(self) -> str:
        """As nginx prints it."""
        return nginx.version()


_TABLE = 100
"""Of routing, for datagrams that nginx is to take in."""


def application(function: NfPlan, _: DutNode, vcpus: int) -> Application:
    """Return nginx with its configuration, and the routes by which it gets datagrams."""
    module, file, traffic = nginx.module(), "nginx.conf", traffic_profile()
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
        nginx.ABOUT[function.kind.in_guest or function.kind],
        nginx.version,
        argv=(nginx.NAME, "-p", str(PLACE), "-c", str(PLACE / file), "-e", "stderr"),
        files={file: configuration(function, ports, workers=vcpus, module=module)},
        more=() if module is None else (Path(module),),
        up=" && ".join([*listening, workers]),
        then="\n".join([f"{ip} route add local default dev lo table {_TABLE}", *rules]),
        counts=Datagrams,
    )
