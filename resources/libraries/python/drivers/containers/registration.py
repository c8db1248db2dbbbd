"""Declaration of containers as leftovers of a killed run."""

from resources.libraries.python.model.driver import Leftover

CONTAINERS = "containers"
_CLEANUP = "resources.libraries.python.drivers.containers.container_cleanup"
LEFTOVERS = (Leftover(key=CONTAINERS, entry=f"{_CLEANUP}:Contained", remove=f"{_CLEANUP}:remove"),)
