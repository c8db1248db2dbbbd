"""A study of outages as tests of its pages have it."""

from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.record import Record
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.outage.analysis import effects
from resources.libraries.python.studies.outage.model import (
    CONTROL,
    Delays,
    EventTrial,
    Impact,
    InstanceTrace,
    Outage,
    OutageSpec,
)
from tests.unit.csit_utils.characterization_records import record

SPEC = PROJECT / "tests" / "characterization" / "specs" / "outage" / "routers.yaml"


def impact(instance: int, lost: int) -> Impact:
    calm = Delays(mean_ns=20_000.0, worst_ns=90_000)
    return Impact(
        instance=instance, sent=60_000, lost=lost, lost_before=0, outage_s=lost / 20_000, gap_s=lost / 20_000,
        recovery_s=lost / 20_000, first_packet_s=lost / 20_000 if lost else None, before=calm, during=calm, after=calm,
    )  # fmt: skip


def outage(collateral: int = 0) -> Outage:
    """A restart of instance 1 by which instance 2 loses a little, and trials without an event."""
    spec = load_yaml(SPEC, OutageSpec).model_copy(update={"instances": 2, "repetitions": 3})
    trials = [
        EventTrial(
            number=2 * repetition + place,
            repetition=repetition,
            event=event,
            event_s=0.04 if place else None,
            done="ports down, then up" if place else "",
            impacts=(impact(1, 1000 * place + repetition), impact(2, collateral * place + repetition)),
            traces=tuple(
                InstanceTrace(
                    instance=one, begin_s=-1.0, bin_s=0.0125, lost=(0, 3), sent=(250, 250), delay_ns=(2e4, None)
                )
                for one in (1, 2)
            )
            if not repetition
            else (),
        )
        for repetition in range(3)
        for place, event in enumerate((CONTROL, "restart nf-1-1"))
    ]
    return Outage(
        spec=spec, rate_pps=20_000.0, ndr_pps=240_000.0, trials=tuple(trials), effects=effects(spec, trials),
        refused={"reload nf-1-1": "reload is not possible for nf-1-1 with its driver"}, asked=6, notes=("a note",),
    )  # fmt: skip


def outage_record(collateral: int = 0) -> Record:
    return record("outage", "Routers", outage=outage(collateral))
