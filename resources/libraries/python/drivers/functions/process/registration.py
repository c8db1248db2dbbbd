"""Declaration of programs of the user's own as NFs."""

from resources.libraries.python.model.driver import FunctionDriver
from resources.libraries.python.model.kinds import NfKind

DRIVERS = (
    FunctionDriver(
        name="process",
        label="program of the user",
        kind=NfKind.PROCESS,
        word="process",
        factory="resources.libraries.python.drivers.functions.process.driver:make",
    ),
)
