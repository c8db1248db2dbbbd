"""A history of nights on made-up testbeds with planted steps, bands, outliers, failures and gaps.

`python -m tests.planted_nights FOLDER NIGHTS` writes `FOLDER/<testbed>/<date>/output.xml`; then
`./csit trend FOLDER`.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import ReceiveRate
from resources.libraries.python.studies.density.model import DensityRecord
from tests.unit.csit_utils.builders import NDR, PDR, goal_result, mrr_result, rate_of, result
from tests.unit.csit_utils.robot_output import write_output_xml

FIRST_NIGHT = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
NOISE = {"sim-a": 0.006, "sim-b": 0.003, "sim-c": 0.009}
"""Relative standard deviation of a rate from night to night, by testbed."""
VSC, CSC, CSP = ServiceType
STEP, BANDS, OUTLIER, FRESH, FAILURE, GAP = "step", "bands", "outlier", "fresh", "failure", "gap"


@dataclass(frozen=True)
class PlantedEvent:
    """Nights in which the rates of some cells of a testbed are multiplied by a factor; 0 forwards nothing."""

    kind: str
    testbed: str
    first: int
    """Night, from 0."""
    last: int
    service_type: ServiceType | None = None
    """None: all."""
    chains: int | None = None
    factor: float = 1.0
    share: float = 1.0
    """Share of the nights that are affected."""

    def meets(self, testbed: str, service_type: ServiceType, chains: int) -> bool:
        """Whether it is about a cell."""
        return testbed == self.testbed and self.service_type in (None, service_type) and self.chains in (None, chains)


def story(nights: int) -> tuple[PlantedEvent, ...]:
    """Return a history with every kind of event; it takes 10 nights to have enough before and after each step."""

    def night(share: float) -> int:
        return round(share * nights)

    end = nights - 1
    return (
        PlantedEvent(STEP, "sim-a", night(0.4), end, CSC, factor=0.92),
        PlantedEvent(STEP, "sim-b", night(0.6), end, VSC, chains=1, factor=0.95),
        PlantedEvent(STEP, "sim-c", night(0.5), end, CSP, factor=1.06),
        PlantedEvent(BANDS, "sim-a", 0, end, VSC, chains=2, factor=0.9, share=0.25),
        PlantedEvent(BANDS, "sim-c", 0, end, CSC, chains=2, factor=0.85, share=0.25),
        PlantedEvent(OUTLIER, "sim-a", night(0.7), night(0.7), CSP, chains=1, factor=0.7),
        PlantedEvent(OUTLIER, "sim-b", night(0.45), night(0.45), factor=0.9),
        PlantedEvent(FRESH, "sim-b", end, end, CSC, chains=2, factor=0.9),
        PlantedEvent(FAILURE, "sim-b", night(0.2), night(0.2) + 2, CSP, chains=2, factor=0.0),
        PlantedEvent(GAP, "sim-a", night(0.25), night(0.25) + 1, factor=0.0),
    )


def records_of(testbed: str, night: int, events: tuple[PlantedEvent, ...], chains: int) -> Iterator[DensityRecord]:
    """Yield an NDR and PDR test and an MRR test of each cell."""
    begun = FIRST_NIGHT + timedelta(days=night)
    for service_type in ServiceType:
        for instances in range(1, chains + 1):
            rng = Random(f"{testbed}/{night}/{service_type}/{instances}")
            pps = 20 * rate_of(service_type, instances, 1)
            for event in events:
                if event.first <= night <= event.last and event.meets(testbed, service_type, instances):
                    pps *= event.factor if rng.random() < event.share else 1.0
            rates = [
                pps * share * rng.gauss(1, NOISE[testbed] * noise) for share, noise in ((1, 1), (1.05, 1), (1.3, 2))
            ]
            said = {
                "simulated": True,
                "testbed": testbed,
                "passed": pps > 0,
                "message": "" if pps else "no traffic at hop 2",
                "started_at": begun.isoformat(),
                "finished_at": (begun := begun + timedelta(minutes=1)).isoformat(),
            }
            ndr, pdr = (goal_result(goal, pps) if pps else None for goal, pps in zip((NDR, PDR), rates, strict=False))
            yield result(service_type, instances, histograms=False, ndr=ndr, pdr=pdr, trials=()).model_copy(update=said)
            mrr = ReceiveRate(offered_pps=1e8, receive_rates_pps=(rates[2],), mean_pps=rates[2], stdev_pps=0.0)
            yield mrr_result(service_type, instances, 1, mrr=mrr if pps else None, trials=()).model_copy(update=said)


def write_nights(folder: Path, nights: int, testbeds: int = 3, chains: int = 1) -> None:
    """Write the outputs of a history."""
    events = story(nights)
    for testbed in list(NOISE)[:testbeds]:
        for night in range(nights):
            if not any(
                each.kind == GAP and each.testbed == testbed and each.first <= night <= each.last for each in events
            ):
                place = folder / testbed / f"{FIRST_NIGHT + timedelta(days=night):%Y-%m-%d}"
                place.mkdir(parents=True)
                write_output_xml(place / "output.xml", records_of(testbed, night, events, chains))


if __name__ == "__main__":
    write_nights(Path(sys.argv[1]), int(sys.argv[2]), chains=2)
