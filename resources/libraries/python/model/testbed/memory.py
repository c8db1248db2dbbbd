"""The memory as the planner sees it: what each NUMA node has."""

from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen

NAMESPACE_MB = 2
"""A network namespace with two links and its kernel threads; 0.3 MB measured as the mean of 60."""


class MemoryNode(Frozen):
    """Memory of one NUMA node. MB are 1024 x 1024 bytes, as QEMU's and the kernel's are."""

    node: Annotated[int, Field(ge=0)] = 0
    total_mb: Annotated[int, Field(gt=0)]
    hugepages_2mb: Annotated[int, Field(ge=0)] = 0
    """Pages of 2 MB that are set aside, a count."""
    hugepages_1gb: Annotated[int, Field(ge=0)] = 0
    """Pages of 1 GB that are set aside, a count."""
    available_mb: Annotated[int, Field(ge=0)] | None = None
    """Free memory at discovery on a machine; None if declared in a file."""

    @property
    def hugepages_mb(self) -> int:
        """All that is set aside in huge pages."""
        return 2 * self.hugepages_2mb + 1024 * self.hugepages_1gb

    @property
    def ordinary_mb(self) -> int:
        """Memory that is not in huge pages."""
        return self.total_mb - self.hugepages_mb

    @model_validator(mode="after")
    def _hugepages_are_inside(self) -> Self:
        if self.hugepages_mb > self.total_mb:
            raise ValueError(f"{self.hugepages_mb} MB of huge pages in {self.total_mb} MB of memory")
        return self


MemoryLayout = tuple[MemoryNode, ...]
"""All NUMA nodes of a machine."""


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory by where it comes from."""

    ordinary_mb: int = 0
    hugepages_mb: int = 0
    either_mb: int = 0
    """From huge pages where there are enough for all of it, else from ordinary memory."""
    pages_1gb: int = field(default=0, compare=False)
    """Number of huge pages where they are of 1 GB: each program begins in pages of its own."""

    @classmethod
    def huge(cls, mb: int, ordinary_mb: int = 0) -> Self:
        """Memory of a program that cannot do without huge pages."""
        return cls(ordinary_mb, mb, 0, -(-mb // 1024))

    def __add__(self, other: "MemoryNeed") -> "MemoryNeed":
        return MemoryNeed(
            self.ordinary_mb + other.ordinary_mb,
            self.hugepages_mb + other.hugepages_mb,
            self.either_mb + other.either_mb,
            self.pages_1gb + other.pages_1gb,
        )

    def times(self, count: int) -> "MemoryNeed":
        """Return the memory of several of a kind."""
        return MemoryNeed(
            self.ordinary_mb * count, self.hugepages_mb * count, self.either_mb * count, self.pages_1gb * count
        )

    def where(self, hugepages_mb: int) -> "MemoryNeed":
        """The same where there are so many huge pages: decided where the rest comes from."""
        if self.hugepages_mb + self.either_mb <= hugepages_mb:
            return MemoryNeed(self.ordinary_mb, self.hugepages_mb + self.either_mb, 0, self.pages_1gb)
        return MemoryNeed(self.ordinary_mb + self.either_mb, self.hugepages_mb, 0, self.pages_1gb)

    def usable_mb(self, there: MemoryNode) -> int:
        """Huge pages of a node that can be had for this: of one size, for a program that takes them takes no mixture.

        Pages of 1 GB are counted as what they hold of this, where there is one for each that is begun.
        """
        wanted, small = self.hugepages_mb + self.either_mb, 2 * there.hugepages_2mb
        return max(small, wanted) if self.pages_1gb <= there.hugepages_1gb and wanted else small
