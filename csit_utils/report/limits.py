"""Upper bounds of the testbed, from records of tests."""

from collections.abc import Sequence

from csit_utils.dataset.contents import Contents
from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.studies.density.speedup_figures import SpeedupLimits, generator_limit
from resources.libraries.python.planning.linerate import line_rate_pps


def limits_of(contents: Contents, rows: Sequence[TestRow], frame: str) -> SpeedupLimits:
    """Return the line rate of the generator's links, if the topology has it, and the highest rate that was offered.

    Args:
        contents: Contents with the record of one of the tests.
        rows: Tests of one system.
        frame: Name of the frame size.
    """
    own = [row for row in rows if row.frame == frame]
    return SpeedupLimits(_line_pps(contents, own), generator_limit(own))


def _line_pps(contents: Contents, rows: Sequence[TestRow]) -> float | None:
    row = next((row for row in rows if row.recorded and row.planned and row.origin == OWN), None)
    if row is None:
        return None
    result = contents.record(row.anchor).result
    if result.plan is None:
        return None
    nics = {
        (port.nic.port, port.nic.rate_bps)
        for link in result.plan.links
        for port in (link.a, link.b)
        if port.owner == "generator" and port.nic is not None
    }
    if not nics or None in {rate_bps for _, rate_bps in nics}:
        return None
    # Each link carries one direction; rates of tests are the sum of both.
    return line_rate_pps(sum(rate_bps or 0 for _, rate_bps in nics), result.asked.frame)
