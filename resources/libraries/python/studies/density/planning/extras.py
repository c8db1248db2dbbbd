"""Further measurements of NDRPDR tests that variables ask for, and the time that they add."""

from collections.abc import Callable
from dataclasses import dataclass

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.cell import TestType

Lookup = Callable[[str], object]
EXTRAS = ("LOSSES", "BACK_TO_BACK", "ENERGY", "STACKS")
"""Variables that ask for them."""
_LOSS_TRIALS = 3
"""At NDR, at PDR and in overload."""
_ENERGY_TRIALS = 5
"""Before the deployment, without traffic, and at 10, 50 and 90 % of PDR."""
READ_STACKS_S = 1.5
"""Starting perf, and reading its samples, on a virtual machine with two cores."""
_BURST_TRIALS = 14
"""Of one search for the longest burst, which begins at the result of the one before: one trial passes, a doubled burst
fails twice, and 1 % is seven halvings away, half of them failing twice."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Measurements of NDRPDR tests besides search and latency, as variables ask for them; 0 for none."""

    loss_trial_s: float = 0.0
    """Length of a trial that counts losses, seconds."""
    bursts: int = 0
    """Repetitions of the search for the longest burst."""
    energy_trial_s: float = 0.0
    """Length of a trial in which power is measured, seconds."""
    stacks_trial_s: float = 0.0
    """Length of the trial in which call stacks are sampled, seconds."""

    def seconds(self, test_type: TestType, trial_overhead_s: float) -> float:
        """Time that they add to a test."""
        if test_type is not TestType.NDRPDR:
            return 0.0
        losses = _LOSS_TRIALS * (self.loss_trial_s + trial_overhead_s) if self.loss_trial_s else 0.0
        energy = _ENERGY_TRIALS * (self.energy_trial_s + trial_overhead_s) if self.energy_trial_s else 0.0
        stacks = self.stacks_trial_s + trial_overhead_s + READ_STACKS_S if self.stacks_trial_s else 0.0
        return losses + energy + stacks + self.bursts * _BURST_TRIALS * trial_overhead_s


def seconds_within(text: str, least: float, most: float) -> float | None:
    """Return a number of seconds within bounds; None for anything else."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if least <= found <= most else None


def _chosen_s(lookup: Lookup, variable: str, bounds: tuple[float, float], what: str) -> float | None:
    """Return the seconds of a variable; None where it is empty, an error that says what it is outside the bounds."""
    text = str(lookup(variable) or "")
    if not text:
        return None
    if (duration_s := seconds_within(text, *bounds)) is None:
        raise ConfigError(f"{variable} '{text}': {what}")
    return duration_s


def chosen_loss_trial_s(lookup: Lookup) -> float | None:
    """Length of a trial that counts losses, from `LOSSES`; None where none are asked for.

    Raises:
        ConfigError: It is no number of seconds in [0.1, 60].
    """
    return _chosen_s(lookup, "LOSSES", (0.1, 60), "the length of a loss trial is 0.1 to 60 seconds")


def chosen_bursts(lookup: Lookup) -> int | None:
    """Repetitions of the search for the longest burst, from `BACK_TO_BACK`; None where it is not asked for.

    Raises:
        ConfigError: It is no whole number in [1, 1000].
    """
    text = str(lookup("BACK_TO_BACK") or "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise ConfigError(f"BACK_TO_BACK '{text}': the longest burst is searched 1 to 1000 times, such as 50")
    return int(text)


def chosen_energy_s(lookup: Lookup) -> float | None:
    """Length of a trial in which energy is measured, from `ENERGY`; None where it is not asked for.

    Raises:
        ConfigError: It is no number of seconds in [1, 600].
    """
    return _chosen_s(lookup, "ENERGY", (1, 600), "the length of an energy trial is 1 to 600 seconds, such as 10")


def chosen_stacks_s(lookup: Lookup) -> float | None:
    """Length of the trial in which call stacks are sampled, from `STACKS`; None where they are not asked for.

    Raises:
        ConfigError: It is no number of seconds in [1, 600].
    """
    return _chosen_s(lookup, "STACKS", (1, 600), "call stacks are sampled for 1 to 600 seconds, such as 10")


def chosen_extras(lookup: Lookup) -> Extras:
    """Further measurements, from `EXTRAS`.

    Raises:
        ConfigError: One of them is out of its bounds.
    """
    return Extras(
        loss_trial_s=chosen_loss_trial_s(lookup) or 0.0,
        bursts=chosen_bursts(lookup) or 0,
        energy_trial_s=chosen_energy_s(lookup) or 0.0,
        stacks_trial_s=chosen_stacks_s(lookup) or 0.0,
    )
