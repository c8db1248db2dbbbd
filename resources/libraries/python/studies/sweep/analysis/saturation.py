"""The break-point: the load that saturates the CPUs of a service (Troia et al., Algorithm 2, line 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from resources.libraries.python.studies.sweep.analysis.break_point import FEWEST, curve_break_point, reaches
from resources.libraries.python.studies.sweep.analysis.points import Array, Observed
from resources.libraries.python.studies.sweep.model.profile import BreakPoint

FULL = 0.98
"""Share of its CPUs from which on a VNF uses all of them."""
NEARLY = 0.95
"""As FULL, where the CPU stops growing there."""
SAME_ALWAYS = 0.05
"""A CPU that varies by less than this share over all loads does not follow the load."""
_SLACK = 0.1
"""Of the distance between two loads: a break-point so little above a load is at that load."""
WAITS = 0.05
"""A VNF that waits for less than this share of the time has its CPUs for itself."""


@dataclass(frozen=True)
class _FoundSaturation:
    """Saturation of one VNF."""

    at: float
    point: BreakPoint


def find_break_point(
    observed: Sequence[Observed], vcpus: Mapping[str, int]
) -> tuple[BreakPoint | None, tuple[str, ...]]:
    """The lowest load at which a CPU is at its maximum, of the VNF that gets there first.

    Of a VNF that shares its CPUs: at which it has work all the time, see `crowded_break_point`.

    At its maximum is: all of its CPUs, or a level above which it does not go although there are more. Where several get
    there within one step of the loads, it is the one that uses the greatest share of its CPUs: the others may just be
    waiting for it.

    Args:
        observed: By rising rate.
        vcpus: CPUs of each VNF, by name.

    Returns:
        None where no load saturated anything, or that is unknown; and sentences that say what is not known and why.
    """
    found, notes = [], []
    for name, there in vcpus.items():
        points = [each for each in observed if each.used(name) is not None]
        if (rates := len({each.rate for each in points})) < FEWEST:
            what = f"is known at {rates} load{'s' * (rates > 1)} only" if rates else "is not known"
            notes.append(f"the CPU of {name} {what}: it gives no break-point")
            continue
        if is_crowded(name, points, there):
            if (crowded := crowded_break_point(name, points, there)) is not None:
                found.append(_FoundSaturation(crowded.rate, crowded))
            continue
        x = np.array([each.rate for each in points])
        y = np.array([each.used(name) for each in points], dtype=float)
        if y.min() >= FULL * there or np.ptp(y) <= SAME_ALWAYS * np.abs(y).max():
            notes.append(
                f"the CPU of {name} does not follow the load ({np.mean(y):.2f} of {there} everywhere), as of software "
                f"that polls, or that the lowest load saturates: it gives no break-point"
            )
            continue
        at = _saturation(x, y, there)
        if at is not None:
            found.append(_FoundSaturation(at, _described(name, at, x, points, there)))
    if not found:
        return None, tuple(notes)
    first = min(found, key=lambda each: each.at)
    step = float(np.median(np.diff(np.unique([each.rate for each in observed]))))
    rivals = [each for each in found if each.at <= first.at + step]
    return max(rivals, key=lambda each: each.point.cpus_used / each.point.cpus_there).point, tuple(notes)


def _saturation(x: Array, y: Array, there: int) -> float | None:
    found = curve_break_point(x, y)
    return found.at if found is not None else reaches(x, y, FULL * there)


def _described(name: str, at: float, x: Array, points: Sequence[Observed], there: int) -> BreakPoint:
    distinct = np.unique(x)
    index = int(np.searchsorted(distinct, at))
    if index and at - distinct[index - 1] <= _SLACK * (distinct[min(index, len(distinct) - 1)] - distinct[index - 1]):
        index -= 1
    rate = float(distinct[min(index, len(distinct) - 1)])
    here = next(each for each in points if each.rate == rate)
    used = sum(here.cpu[name])
    behind = [each.used(name) or 0.0 for each in points if each.rate >= rate]
    level = float(np.median(behind))
    if level >= NEARLY * there:
        reason = f"{name} uses all of its CPUs ({level:.2f} of {there})"
    else:
        threads = np.median([each.cpu[name] for each in points if each.rate >= rate], axis=0)
        busiest = f"; its busiest data thread runs {100 * max(threads):.0f} % of the time" if len(threads) > 1 else ""
        reason = f"{name} uses no more than {level:.2f} of {there} CPUs, whatever the load{busiest}"
    return BreakPoint(rate=rate, vnf=name, cpus_used=used, cpus_there=there, reason=reason)


def is_crowded(name: str, points: Sequence[Observed], there: int) -> bool:
    """Whether a VNF waits for CPUs that others have, at any load.

    Args:
        name: Of the VNF.
        points: Those that know what it uses.
        there: Its CPUs.
    """
    return any((each.wanted(name) or 0.0) - (each.used(name) or 0.0) > WAITS * there for each in points)


def crowded_break_point(name: str, points: Sequence[Observed], there: int) -> BreakPoint | None:
    """Return the lowest load from which on a VNF that shares its CPUs has work all the time.

    It never runs all of the time, so its CPU usage is no indicator; the time in which it has work is, whether it runs
    or waits for the CPU. Data threads that take more packets at once the longer they waited use the CPU more
    efficiently at higher loads. So neither a busy CPU nor a level of its use is a sign.

    Args:
        name: Of the VNF.
        points: By rising rate; all know what it uses.
        there: Its CPUs.

    Returns:
        None where that is the lowest load already, or at no load.
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
