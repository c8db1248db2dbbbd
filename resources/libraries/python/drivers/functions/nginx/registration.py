"""Declarations of nginx as NFs."""

from functools import partial

from resources.libraries.python.model.driver import Form, FunctionDriver, GuestKind, RequiredProgram
from resources.libraries.python.model.measurements.disturbance import PartEvent

PROGRAM = RequiredProgram("nginx", "nginx")
ROUTES = RequiredProgram("ip", "iproute2")
"""Makes rules of routing by UDP ports, for which the busybox of a guest has no means."""
_PACKAGE = "resources.libraries.python.drivers.functions.nginx"
_nginx = partial(
    FunctionDriver,
    label="nginx",
    form=Form.PROGRAM_BESIDE,
    factory=f"{_PACKAGE}.driver:NginxProxies",
    missing=f"{_PACKAGE}.program:missing",
    programs=(PROGRAM,),
    on_request=True,
    udp_only=True,
    events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
)
_guest = partial(
    GuestKind,
    application=f"{_PACKAGE}.driver:application",
    programs=(RequiredProgram("nginx", "nginx libnginx-mod-stream"), ROUTES),
    missing=f"{_PACKAGE}.program:missing",
)

DRIVERS = (
    _nginx(name="nginx_balancer", word="nginxlb", guest=_guest("nginx_balancer")),
    _nginx(name="nginx_proxy", word="nginxproxy", guest=_guest("nginx_proxy")),
)
