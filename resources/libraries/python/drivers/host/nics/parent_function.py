"""A port whose virtual functions were made for a run: what is on record to remove them."""

from pathlib import Path

from resources.libraries.python.drivers.host.links.sysfs import ROOT
from resources.libraries.python.drivers.host.nics.nic_users import Surroundings
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen


class ParentFunction(Frozen):
    """A physical function; it had no virtual ones before."""

    pci_address: str

    def __str__(self) -> str:
        return f"virtual functions of PCI port {self.pci_address}"

    def restore(self, root: Path = ROOT, around: Surroundings | None = None) -> list[str]:
        """Remove its virtual functions; say so where there were some.

        Raises:
            CsitError: The kernel refused.
        """
        path = root / "bus/pci/devices" / self.pci_address / "sriov_numvfs"
        try:
            if int(path.read_text(encoding="ascii")) == 0:
                return []
            (around or Surroundings()).write(path, "0")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CsitError(f"{self} cannot be removed: {error.strerror}") from error
        return [f"removed {self}"]
