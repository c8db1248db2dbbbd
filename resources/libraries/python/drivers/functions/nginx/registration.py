"""Declarations of nginx as NFs."""

from resources.libraries.python.model.driver import FunctionDriver, RequiredProgram
from resources.libraries.python.model.kinds import NfKind

DRIVERS = tuple(
    FunctionDriver(
        name=kind.value,
        label="nginx",
        kind=kind,
        word=word,
        factory="resources.libraries.python.drivers.functions.nginx.driver:make",
        missing="resources.libraries.python.drivers.functions.nginx.program:missing_on",
        programs=(RequiredProgram("nginx", "nginx"),),
        words=("nginx",),
        on_request=True,
    )
    for kind, word in ((NfKind.NGINX_BALANCER, "nginxlb"), (NfKind.NGINX_PROXY, "nginxproxy"))
)
