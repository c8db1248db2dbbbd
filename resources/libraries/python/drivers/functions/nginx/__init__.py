"""Network functions as nginx: datagrams are taken in and sent on, a session each."""

from functools import partial

from resources.libraries.python.model.driver import (
    Form,
    FunctionDriver,
    GuestKind,
    RequiredProgram,
    SimulatedNf,
    Traffic,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent

PROGRAM = RequiredProgram("nginx", "nginx")
ROUTES = RequiredProgram("ip", "iproute2")
"""Makes rules of routing by UDP ports, for which the busybox of a guest has no means."""
OPEN_FILES = 16384
_BUFFERS_MIB = 48.0
"""Assumed, of a proxy."""
_PACKAGE = "resources.libraries.python.drivers.functions.nginx"
_nginx = partial(
    FunctionDriver,
    label="nginx",
    form=Form.PROGRAM_BESIDE,
    factory=f"{_PACKAGE}.driver:NginxProxies",
    missing=f"{_PACKAGE}.driver:missing",
    programs=(PROGRAM,),
    on_request=True,
    open_files=lambda _: OPEN_FILES,
    takes=frozenset({Traffic.UDP}),
    events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
)
_guest = partial(
    GuestKind,
    application=f"{_PACKAGE}.driver:application",
    programs=(RequiredProgram("nginx", "nginx libnginx-mod-stream"), ROUTES),
    missing=f"{_PACKAGE}.driver:missing",
)

DRIVERS = (
    _nginx(
        name="nginx_balancer",
        word="nginxlb",
        guest=_guest("nginx_balancer"),
        # Type IV of Zeng et al.
        simulated=SimulatedNf(
            half_core_pps=0.1e6, sensitivity=0.95, half_pressure=0.61, pressure=0.93, memory_mib=_BUFFERS_MIB
        ),
    ),
    _nginx(
        name="nginx_proxy",
        word="nginxproxy",
        guest=_guest("nginx_proxy"),
        # Type V of Zeng et al.
        simulated=SimulatedNf(
            half_core_pps=0.09e6, sensitivity=0.95, half_pressure=0.50, pressure=0.95, memory_mib=_BUFFERS_MIB
        ),
    ),
)
