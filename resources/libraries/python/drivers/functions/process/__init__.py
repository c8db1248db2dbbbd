"""Network functions as programs of the user's own."""

from resources.libraries.python.model.driver import Form, FunctionDriver, SimulatedNf
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="process",
        label="user program",
        word="process",
        form=Form.PROGRAM_BESIDE,
        passive=True,
        simulated=SimulatedNf(half_core_pps=0.2e6),
        takes_program=True,
        on_request=True,
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        factory="resources.libraries.python.drivers.functions.process.driver:UserPrograms",
    ),
)
