"""Coverage of a study: number of measurements, and the required share."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, NamedTuple

from pydantic import Field

from resources.libraries.python.errors import CsitError

LeastMeasured = Annotated[float, Field(ge=0, le=1)]
"""Share of what is asked, in [0, 1], below which a study fails. What a policy forbids is not asked."""
_MAX_REASONS = 3


class Coverage(NamedTuple):
    """Measurements made, of those asked for."""

    measured: int
    asked: int

    def __str__(self) -> str:
        """`40 of 58`."""
        return f"{self.measured} of {self.asked}"

    def check(self, what: str, least: float, reasons: Iterable[str | None]) -> None:
        """See that enough was measured.

        `what`: What was done with what: `chains were measured`.
        `least`: Share that the specification asks for.
        `reasons`: Why others were not measured, one for each; the most frequent are in the error.

        Raises:
            CsitError: Less was measured than the specification asks for.
        """
        if self.measured >= least * self.asked:
            return
        frequent = Counter(reason for reason in reasons if reason).most_common(_MAX_REASONS)
        why = "; ".join(f"{count} x {reason}" for reason, count in frequent)
        wanted = "all of them" if least == 1 else f"{100 * least:g} %"
        raise CsitError(
            f"{self} {what}, the specification requires {wanted} (least_measured: {least:g})"
            + (f": {why}" if why else "")
        )
