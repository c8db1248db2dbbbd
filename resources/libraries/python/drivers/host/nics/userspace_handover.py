"""Physical ports that a program of user space drives past the kernel: handed over for a run, given back afterwards."""

from collections.abc import Iterable
from functools import partial

from resources.libraries.python.drivers.host.nics.nic_driver import USER_SPACE, Binding, PciDrivers
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.testbed.roles.part import Part


class HandedOver(Part):
    """Ports with another driver, from `start` to `stop`.

    `nics`: Ports with their PCI addresses; their `uio_driver` is the one that they get, by default vfio-pci.
    `drivers`: Drivers by device; replaced in tests.

    Raises:
        ConfigError: One has no PCI address.
    """

    def __init__(self, nics: Iterable[Nic], lock: MachineLock, drivers: PciDrivers | None = None) -> None:
        self._wanted: dict[str, str] = {}
        for nic in nics:
            if nic.pci_address is None:
                raise ConfigError(f"{nic.port}: no pci_address, so it cannot be handed to a program of user space")
            self._wanted[nic.pci_address] = nic.uio_driver or USER_SPACE
        self._lock = lock
        self._drivers = drivers or PciDrivers()
        self._bound: list[Binding] = []

    def start(self) -> None:
        """Look at all of them, then give them their driver one by one.

        Raises:
            ConfigError: One is not there, or must not be taken.
            Unsupported: The driver or an IOMMU is missing.
            CsitError: A driver does not release one, or does not take it.
        """
        # Ports of one NIC may share an IOMMU group, which user space gets as a whole or not at all.
        together = [address for address, driver in self._wanted.items() if driver == USER_SPACE]
        found = [(self._drivers.look(address, driver, together), driver) for address, driver in self._wanted.items()]
        for binding, driver in found:
            self._lock.claim("bindings", binding)
            self._bound.append(binding)
            self._drivers.bind(binding, driver)

    def stop(self) -> None:
        """Give all of them back. Safe to call after a failure.

        Raises:
            CsitError: One could not be given back, and stays on record; the others were.
        """
        bound, self._bound = self._bound, []
        take_all(partial(self._restore, binding) for binding in reversed(bound))

    def _restore(self, binding: Binding) -> list[str]:
        restored = self._drivers.restore(binding)
        self._lock.release("bindings", [binding])
        return restored
