"""Declaration of Linux routers as NFs."""

from resources.libraries.python.model.driver import FunctionDriver
from resources.libraries.python.model.kinds import NfKind

DRIVERS = (
    FunctionDriver(
        name="linux_router",
        label="Linux router",
        kind=NfKind.LINUX_ROUTER,
        word="lnxip4",
        factory="resources.libraries.python.drivers.functions.linux_router.driver:make",
    ),
)
