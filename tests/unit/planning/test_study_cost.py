"""What all studies say of their cost, and the refusal of those without end."""

from dataclasses import replace

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.planning.cost import StudyCost

STUDY = StudyCost("pairs", steps=4, runs=20, unit="measurements", seconds=100.0, counted={"pairs": 4})


def test_a_step_takes_its_share_of_the_time() -> None:
    assert STUDY.step_s == 25.0
    assert replace(STUDY, steps=1).step_s == 100.0
    assert replace(STUDY, steps=0, seconds=3.0).step_s == 3.0
    assert list(STUDY.counts().items()) == [("pairs", 4), ("seconds", 100.0)]


def test_too_many_measurements_and_too_much_time_are_refused_with_their_numbers() -> None:
    with pytest.raises(ConfigError, match=r"^pairs: 1,000,000,000 measurements; at most"):
        replace(STUDY, runs=10**9)
    with pytest.raises(ConfigError, match=r"^pairs: 20 measurements take about 11,574 days; at most"):
        replace(STUDY, seconds=1e9)
