"""Problems of an instance: the cause of its end is named, also when it comes between two looks."""

from types import SimpleNamespace
from typing import Any

from resources.libraries.python.drivers.host.cgroups.cgroups import GroupLimits
from resources.libraries.python.drivers.services.instances import ServiceInstance


def test_an_instance_that_uses_up_its_memory_while_it_is_looked_at_is_named_with_it() -> None:
    """The kernel kills its processes just before the look whether there are any."""
    killed: list[int] = []

    def processes() -> tuple[int, ...]:
        killed.append(1)
        return ()

    instance: Any = ServiceInstance.__new__(ServiceInstance)
    instance.name, instance._busy = "back-end-1", True
    instance._limits = GroupLimits(1.0, 48 << 20, None)
    instance.group = SimpleNamespace(processes=processes, killed_for_memory=lambda: len(killed))
    assert instance.problems() == (
        "back-end-1 used up its 48 MB: the kernel killed 1 of its processes",
        "all processes of back-end-1 have ended",
    )
