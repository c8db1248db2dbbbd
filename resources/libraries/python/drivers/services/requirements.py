"""What this machine lacks for services of several components; their tests are skipped or fail without it."""

import shutil
from collections.abc import Iterator

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.services.scripts import environment
from resources.libraries.python.errors import Unsupported

PROGRAMS = {
    "SIP service": ("kamailio", "redis-server", "redis-cli", "sipp"),
    "HTTP proxy": ("haproxy", "nginx", "httperf"),
}
"""That the scripts of the services in tests/characterization/specs start. Other services have needs of their own."""


def missing() -> Iterator[Problem]:
    """Everything; touches nothing."""
    try:
        cgroups.discover()
    except Unsupported as error:
        yield Problem(str(error), "without it services cannot be sized")
    path = environment({})["PATH"]
    for service, programs in PROGRAMS.items():
        absent = [program for program in programs if shutil.which(program, path=path) is None]
        if absent:
            yield Problem(
                f"{', '.join(absent)} missing for the {service} of tests/characterization",
                "as root on Debian or Ubuntu: resources/tools/packages.sh characterization",
            )
