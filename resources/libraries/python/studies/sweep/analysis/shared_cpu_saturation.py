"""Saturation of a VNF that shares its CPUs: it never runs all of the time, so its CPU usage is no indicator.

The indicator is the time in which it has work: running, or waiting while others have the CPU. At all of the time it
cannot do more. Data threads that take the more packets at once the longer they waited use the CPU the better the more
loaded they are; so neither a busy CPU nor a level of its use is a sign, and no break-point is looked for.
"""

from collections.abc import Sequence

import numpy as np

from resources.libraries.python.studies.sweep.analysis.break_point import reaches
from resources.libraries.python.studies.sweep.analysis.points import Observed
from resources.libraries.python.studies.sweep.model.profile import BreakPoint

FULL = 0.98
"""Share of the time from which on a VNF has work all the time."""
WAITS = 0.05
"""A VNF that waits for less than this share of the time has its CPUs for itself."""


def is_crowded(name: str, points: Sequence[Observed], there: int) -> bool:
    """Whether a VNF waits for CPUs that others have, at any load.

    Args:
        name: Of the VNF.
        points: Those that know what it uses.
        there: Its CPUs.
    """
    return any((each.wanted(name) or 0.0) - (each.used(name) or 0.0) > WAITS * there for each in points)


def crowded_break_point(name: str, points: Sequence[Observed], there: int) -> BreakPoint | None:
    """The lowest load from which on a VNF has work all the time; None where there is none below it or none at all.

    Args:
        name: Of the VNF.
        points: By rising rate; all know what it uses.
        there: Its CPUs.
    """
    known = [each for each in points if each.wanted(name) is not None]
    rates = np.array([each.rate for each in known])
    wanted = np.array([each.wanted(name) for each in known], dtype=float)
    at = reaches(rates, wanted, FULL * there)
    if at is None or at == rates[0]:
        return None
    here = next(each for each in known if each.rate == at)
    used = float(sum(here.cpu[name]))
    reason = (
        f"{name} has work all the time ({here.wanted(name):.2f} of {there}) and gets {used:.2f} of its CPUs, which it "
        "shares"
    )
    return BreakPoint(rate=at, vnf=name, cpus_used=used, cpus_there=there, reason=reason)
