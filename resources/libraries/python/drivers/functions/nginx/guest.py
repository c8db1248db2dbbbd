"""nginx in guests."""

from pathlib import Path
from socket import IPPROTO_UDP

from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.drivers.functions.nginx.configuration import configuration, ports
from resources.libraries.python.drivers.functions.nginx.registration import ROUTES
from resources.libraries.python.drivers.functions.vm_application.applications import PLACE, Application
from resources.libraries.python.drivers.functions.vm_application.counters import Datagrams
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.traffic import traffic_profile

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
