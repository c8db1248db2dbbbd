"""Specification of a study of outages: a service, a load, and events."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, at_most_items, of_form
from resources.libraries.python.model.bounds import (
    HIGHEST_PPS,
    LONGEST_WINDOW_S,
    MAX_DISTURBED_INSTANCES,
    MAX_EVENTS,
    MAX_REPETITIONS,
)
from resources.libraries.python.model.findings.coverage import LeastMeasured
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import Cell, Frame, ServiceType
from resources.libraries.python.model.request.frames import FrameByName
from resources.libraries.python.model.request.kinds import NfKind, are_vms
from resources.libraries.python.model.request.nf_size import NfSize

VSWITCH = "vswitch"
"""Target that all instances share."""
CONTROL = "no event"
"""Name of trials without an event: what is lost in these is lost in any trial."""


class TargetedEvent(Frozen):
    """An event, and the part that it happens to."""

    event: PartEvent
    target: Annotated[
        str,
        of_form(
            r"nf-[1-9]\d{0,2}-[1-9]\d{0,2}|instance-[1-9]\d{0,2}|vswitch",
            "a target such as nf-1-1, instance-1 or vswitch",
        ),
    ] = "nf-1-1"
    """An NF as `nf-<instance>-<node>`, all NFs of a service instance as `instance-<instance>`, or `vswitch`."""
    hold_s: Annotated[float, Field(ge=0), at_most(LONGEST_WINDOW_S)] = 0.2
    """Duration of a pause."""

    @property
    def name(self) -> str:
        """PartEvent and target: `pause nf-1-1`."""
        return f"{self.event} {self.target}"

    @property
    def instance(self) -> int | None:
        """The service instance that is hit; None for the vSwitch, which all of them have."""
        return None if self.target == VSWITCH else int(self.target.split("-")[1])

    @property
    def node(self) -> int | None:
        """Place of the NF that is hit in its chain; None for all NFs of an instance, and for the vSwitch."""
        return int(self.target.split("-")[2]) if self.target.startswith("nf-") else None


class OutageSpec(Frozen):
    """All that a study of outages is asked."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    instances: Annotated[int, Field(ge=2), at_most(MAX_DISTURBED_INSTANCES)]
    nf_kinds: Annotated[tuple[NfKind, ...], Field(min_length=1), at_most_items(16)]
    """NFs of each instance in the order of the chain."""
    size: NfSize = NfSize.ONE
    frame: Frame
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the NDR of the deployment, which is searched first."""
    rate_pps: Annotated[float, Field(gt=0), at_most(HIGHEST_PPS)] | None = None
    """Rate of each instance and direction; None for the share of NDR."""
    search: str = "quick,width=0.1,sum=1"
    """Profile of that search."""
    events: Annotated[tuple[TargetedEvent, ...], Field(min_length=1), at_most_items(MAX_EVENTS)]
    control: bool = True
    """Whether each repetition has a trial without an event."""
    quarantine_loss: Annotated[float, Field(ge=0, le=1)] = 0.005
    """Share of the packets of an instance; a trial that loses more before its event, and a repetition whose trial
    without an event loses more, is left out of the effects. 1 keeps all."""
    repetitions: Annotated[int, Field(ge=1), at_most(MAX_REPETITIONS)] = 5
    before_s: Annotated[float, Field(ge=0.2), at_most(LONGEST_WINDOW_S)] = 1.0
    """Traffic before the event."""
    after_s: Annotated[float, Field(ge=0.2), at_most(LONGEST_WINDOW_S)] = 2.0
    """Traffic after the event."""
    bin_s: Annotated[float, Field(ge=0.0001, le=0.001)] = 0.001
    """Resolution of the receiver."""
    least_measured: LeastMeasured = 1.0
    """Required share of all trials; with less the test fails, and its record has what there is."""
    seed: int = 1
    """Seed of the order of events, which is shuffled in each repetition."""

    @model_validator(mode="after")
    def _cell_exists(self) -> Self:
        """See that kinds and sizes make a cell: of some kinds each network function needs a program."""
        self.cell  # noqa: B018 - raises
        return self

    @model_validator(mode="after")
    def _targets_exist(self) -> Self:
        for strike in self.events:
            if (strike.instance or 1) > self.instances or (strike.node or 1) > len(self.nf_kinds):
                raise ValueError(
                    f"{strike.target} is not among {self.instances} instances of {len(self.nf_kinds)} network functions"
                )
            if strike.event is PartEvent.PAUSE and strike.hold_s >= self.after_s:
                raise ValueError(
                    f"{strike.name} takes {strike.hold_s:g} s, and traffic ends {self.after_s:g} s after it began"
                )
        if twice := [name for name, count in Counter(strike.name for strike in self.events).items() if count > 1]:
            raise ValueError(f"{', '.join(twice)} more than once")
        return self

    @property
    def cell(self) -> Cell:
        """Cell that is deployed for each trial."""
        return Cell(
            service_type=ServiceType.VSC if are_vms(self.nf_kinds) else ServiceType.CSC,
            nf_chains=self.instances,
            nf_nodes=len(self.nf_kinds),
            nf_sizes=(self.size,),
            nf_kinds=self.nf_kinds,
        )

    @property
    def duration_s(self) -> float:
        """Duration of one trial."""
        return self.before_s + self.after_s

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the events, the control first."""
        return (*([CONTROL] if self.control else []), *(strike.name for strike in self.events))


class OutageFile(OutageSpec):
    """A study as a file says it: a frame size has its name (`64B`, `IMIX`)."""

    frame: FrameByName


def load_outage(path: Path, settings: Mapping[str, str] = MappingProxyType({})) -> OutageSpec:
    """Read a specification.

    Raises:
        ConfigError: The file does not fit; the sentence has file, line and path inside it.
    """
    return OutageSpec.model_validate(load_yaml(path, OutageFile, settings).model_dump())
