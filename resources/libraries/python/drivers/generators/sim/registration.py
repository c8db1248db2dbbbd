"""Declaration of the simulated generator."""

from resources.libraries.python.model.driver import GeneratorDriver
from resources.libraries.python.studies.sweep.model.record import Protocol

DRIVERS = (GeneratorDriver(name="sim", label="simulated generator", protocols=tuple(Protocol)),)
