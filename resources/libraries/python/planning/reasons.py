"""Reasons why a cell does not fit, one kind of limit each."""

from collections.abc import Sequence
from enum import StrEnum

from resources.libraries.python.model.base import Frozen


class Limit(StrEnum):
    """The exhausted resource."""

    KIND = "kind"
    """The testbed has no driver for such an NF."""
    TRAFFIC = "traffic"
    """The generator sends nothing that the NFs take."""
    ADDRESSES = "addresses"
    LINKS = "links"
    """A lab has fewer cables than the cell has instances."""
    DISCRIMINATOR = "discriminator"
    """Drivers cannot keep instances apart as the topology says."""
    SMT = "smt"
    CORES = "cores"
    CACHE = "cache"
    """Ways of the last-level cache."""
    MEMORY = "memory"
    HUGEPAGES = "hugepages"


class Reason(Frozen):
    """One limit that a cell goes past."""

    limit: Limit
    text: str
    """A sentence part with its numbers: `needs 33 cores on NUMA 0, 28 available`."""
    needs: int | None = None
    """Cores, or MB; None where the limit is no number."""
    there: int | None = None


def sentence(reasons: Sequence[Reason]) -> str | None:
    """All reasons in one text; None for none."""
    return "; ".join(reason.text for reason in reasons) or None
