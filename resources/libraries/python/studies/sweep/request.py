"""A sweep as people ask for it, and its loads as they write them: `10000-200000/10000`, `auto`, `on 2 off 1 at 500`."""

import re
from typing import TypeVar

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, error_text
from resources.libraries.python.model.bounds import ASKED, LONGEST_QUOTE, MAX_SWEEP_LOADS, quoted
from resources.libraries.python.model.request.cell import Cell, Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates

DEFAULT_WIDTH = 0.02
_Kind = TypeVar("_Kind", Rates, Bursts)
_NUMBER = r"(\d+(?:\.\d+)?)"
_RATES = re.compile(rf"{_NUMBER}(?:-{_NUMBER}/{_NUMBER})?")
_BURSTS = re.compile(rf"on (\d+) off (\d+) at {_NUMBER}(x?)")


class RelativeBursts(Frozen):
    """Bursts whose rate is a multiple of what the service can forward."""

    on_s: int
    off_s: int
    times: float

    def at(self, capacity_pps: float) -> Bursts:
        """The bursts, once that is known; packets per second of each flow, one way."""
        return Bursts(rate_pps=self.times * capacity_pps, on_s=self.on_s, off_s=self.off_s)


def parse_rates(text: str) -> Rates | None:
    """Rates of each flow in packets per second: `auto` (None), one load, or `first-last/step`.

    Raises:
        ConfigError: They make no sense.
    """
    words = text.strip()
    if words == "auto":
        return None
    found = _RATES.fullmatch(words) if len(words) <= LONGEST_QUOTE else None
    shown = quoted(text)
    if found is None:
        raise ConfigError(f"rates '{shown}' are neither 'auto' nor like 10000-200000/10000 (first-last/step, pps)")
    first = float(found[1])
    last, step = (first, first) if found[2] is None else (float(found[2]), float(found[3]))
    rates = _made(Rates, f"rates '{shown}'", start_pps=first, stop_pps=last, step_pps=step)
    # Before they are listed: a step of 0.001 pps would fill the memory.
    if (count := (last - first) / step + 1) > MAX_SWEEP_LOADS:
        raise ConfigError(f"rates '{shown}': {count:.9g} loads; at most {MAX_SWEEP_LOADS}")
    return rates


def parse_bursts(text: str) -> Bursts | RelativeBursts:
    """Bursts: `on 2 off 1 at 50000` (seconds, pps of each flow), or `at 1.2x` for a multiple of what can be forwarded.

    Raises:
        ConfigError: They make no sense.
    """
    words = " ".join(text.split())
    found = _BURSTS.fullmatch(words) if len(words) <= LONGEST_QUOTE else None
    shown = quoted(text)
    if found is None:
        raise ConfigError(f"bursts '{shown}' are not like 'on 2 off 1 at 50000' or 'on 2 off 1 at 1.2x'")
    on_s, off_s, number = int(found[1]), int(found[2]), float(found[3])
    bursts = _made(Bursts, f"bursts '{shown}'", rate_pps=number, on_s=on_s, off_s=off_s)
    return RelativeBursts(on_s=on_s, off_s=off_s, times=number) if found[4] else bursts


def _made(kind: type[_Kind], what: str, **values: float) -> _Kind:
    try:
        return kind.model_validate(values, context=ASKED)
    except ValidationError as error:
        raise ConfigError(f"{what}: {error_text(error)}") from error


class SweepRequest(Frozen):
    """What a sweep is to measure."""

    name: str
    """Name of the service."""
    cell: Cell
    frame: Frame
    flows: int
    protocol: Protocol
    duration_s: int
    """Duration of each load; of all bursts together."""
    rates: Rates | None = None
    """None without bursts: twelve steps up to 1.6 times what the service can forward."""
    bursts: Bursts | RelativeBursts | None = None
    stop_loss_ratio: float | None = None
    """See `load_steps.sweep`."""
    departures: Departures = Departures.CONSTANT
    width: float | None = DEFAULT_WIDTH
    """Relative width of the break-point's interval down to which further loads are measured; None measures none."""
    smt: bool | None = None
    """Whether SMT is on, or switched off for the sweep; None for as it is. The plan says which, also for the digest."""

    def check(self) -> None:
        """Check that branches can share flows equally.

        Raises:
            ConfigError: They cannot.
        """
        branches = len(self.cell.instances)
        if self.flows < 1 or self.flows % branches:
            raise ConfigError(f"{self.flows} flows for {branches} branches: each branch needs the same number of them")
