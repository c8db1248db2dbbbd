"""Declaration of tracing instances of the kernel as leftovers of a killed run."""

from resources.libraries.python.model.driver import Leftover

TRACES = "traces"
LEFTOVERS = (
    Leftover(
        key=TRACES,
        label="tracing instance",
        remove="resources.libraries.python.drivers.probes.tracer.tracefs:remove_left",
    ),
)
