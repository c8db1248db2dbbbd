"""Robot variables of measurements beside the search: each is checked before a run starts."""

from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.qualifications import FOLDER
from resources.libraries.python.studies.density.planning.extras import (
    chosen_bursts,
    chosen_energy_s,
    chosen_stacks_s,
)
from resources.libraries.python.studies.shared.choices import chosen_noise_s, chosen_qualifications


@pytest.mark.parametrize(("text", "repetitions"), [("1", 1), ("50", 50), ("1000", 1000), ("", None)])
def test_repetitions_of_the_search_for_bursts(text: str, repetitions: int | None) -> None:
    assert chosen_bursts({"BACK_TO_BACK": text}.get) == repetitions


@pytest.mark.parametrize("text", ["0", "1001", "-1", "1.5", "many", "9" * 5000, "٣"])
def test_other_repetitions_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the longest burst is searched 1 to 1000 times"):
        chosen_bursts({"BACK_TO_BACK": text}.get)


@pytest.mark.parametrize(("text", "duration_s"), [("", 0.9), ("0", 0.0), ("0.1", 0.1), ("10", 10.0)])
def test_how_long_the_noise_floor_is_observed(text: str, duration_s: float) -> None:
    assert chosen_noise_s({"NOISE_FLOOR": text}.get) == duration_s


@pytest.mark.parametrize("text", ["0.05", "11", "nan", "inf", "-1", "long"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the noise floor is observed for"):
        chosen_noise_s({"NOISE_FLOOR": text}.get)


@pytest.mark.parametrize(("text", "trial_s"), [("", None), ("1", 1.0), ("10", 10.0), ("600", 600.0)])
def test_length_of_an_energy_trial(text: str, trial_s: float | None) -> None:
    assert chosen_energy_s({"ENERGY": text}.get) == trial_s


@pytest.mark.parametrize("text", ["0", "0.5", "601", "nan", "inf", "-1", "on"])
def test_other_lengths_of_an_energy_trial_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the length of an energy trial is 1 to 600 seconds, such as 10"):
        chosen_energy_s({"ENERGY": text}.get)


@pytest.mark.parametrize(("text", "trial_s"), [("", None), ("1", 1.0), ("10", 10.0), ("600", 600.0)])
def test_length_of_the_trial_in_which_call_stacks_are_sampled(text: str, trial_s: float | None) -> None:
    assert chosen_stacks_s({"STACKS": text}.get) == trial_s


@pytest.mark.parametrize("text", ["0", "0.5", "601", "nan", "inf", "-1", "on"])
def test_other_lengths_of_sampling_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="call stacks are sampled for 1 to 600 seconds, such as 10"):
        chosen_stacks_s({"STACKS": text}.get)


def test_qualifications_are_in_a_folder_or_off(tmp_path: Path) -> None:
    assert chosen_qualifications({"QUALIFY": "off"}.get) is None
    assert chosen_qualifications({"QUALIFY": "auto"}.get) == chosen_qualifications({}.get) == FOLDER
    assert chosen_qualifications({"QUALIFY": str(tmp_path)}.get) == tmp_path
    with pytest.raises(ConfigError, match="QUALIFY 'on': auto, off for a run without, or the folder"):
        chosen_qualifications({"QUALIFY": "on"}.get)
