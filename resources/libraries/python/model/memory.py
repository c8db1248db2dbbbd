"""The memory as the planner sees it: what each NUMA node has."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen


class MemoryNode(Frozen):
    """Memory of one NUMA node. MB are 1024 x 1024 bytes, as QEMU's and the kernel's are."""

    node: int = 0
    total_mb: Annotated[int, Field(gt=0)]
    hugepages_2mb: Annotated[int, Field(ge=0)] = 0
    """Pages of 2 MB that are set aside, a count."""
    hugepages_1gb: Annotated[int, Field(ge=0)] = 0
    """Pages of 1 GB that are set aside, a count."""
    available_mb: Annotated[int, Field(ge=0)] | None = None
    """What was free for use when it was discovered on a machine; None where a file declares the rest."""

    @property
    def hugepages_mb(self) -> int:
        """All that is set aside in huge pages."""
        return 2 * self.hugepages_2mb + 1024 * self.hugepages_1gb

    @property
    def ordinary_mb(self) -> int:
        """What is not in huge pages."""
        return self.total_mb - self.hugepages_mb

    @model_validator(mode="after")
    def _hugepages_are_inside(self) -> Self:
        if self.hugepages_mb > self.total_mb:
            raise ValueError(f"{self.hugepages_mb} MB of huge pages in {self.total_mb} MB of memory")
        return self


MemoryLayout = tuple[MemoryNode, ...]
"""All NUMA nodes of a machine."""
