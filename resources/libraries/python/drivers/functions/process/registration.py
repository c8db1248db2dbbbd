"""Declaration of programs of the user's own as NFs."""

from resources.libraries.python.model.driver import Form, FunctionDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="process",
        label="user program",
        word="process",
        form=Form.PROGRAM_BESIDE,
        passive=True,
        takes_program=True,
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        factory="resources.libraries.python.drivers.functions.process.driver:UserPrograms",
    ),
)
