"""What a person is told before a sizing."""

import re
from pathlib import Path

import pytest

from resources.libraries.python.studies.sizing.model.load import load_specifications
from resources.libraries.python.studies.sizing.planning.cost import cost
from resources.libraries.python.studies.sizing.progress import SizingProgress, cost_in_words

SPECS = Path(__file__).parents[3] / "characterization" / "specs"


@pytest.mark.parametrize(
    ("deployment", "workload", "words"),
    [
        (
            "clearwater/deployment.json",
            "clearwater/workload.json",
            r"at most 4 sizes, at most 19 loads on each, each 10 times: at most \d+ h \d\d min",
        ),
        ("sip-service/deployment.json", "sip-service/reg-dereg.json", r"at most 4 sizes, at most 9 loads on each: .+"),
        ("http-proxy/deployment.json", "http-proxy/requests.json", r"4 sizes, at most 8 loads on each: at most .+"),
    ],
)
def test_the_cost_of_a_sizing_is_told_before_it_runs(deployment: str, workload: str, words: str) -> None:
    asked = load_specifications(SPECS / deployment, SPECS / workload)
    assert re.fullmatch(words, cost_in_words(cost(asked.deployment, asked.workload)))


@pytest.mark.parametrize(
    "path", sorted(SPECS.glob("*/deployment*.json")) + sorted(SPECS.glob("http-proxy/*pinned.json"))
)
def test_every_specification_loads_with_its_scripts(path: Path) -> None:
    workload = next(other for other in sorted(path.parent.glob("*.json")) if '"generator"' in other.read_text())
    assert load_specifications(path, workload).install


def test_the_time_left_follows_what_loads_take_and_forgets_those_that_are_left_out() -> None:
    asked = load_specifications(SPECS / "http-proxy" / "deployment.json", SPECS / "http-proxy" / "requests.json")
    planned = cost(asked.deployment, asked.workload)
    now = 100.0
    progress = SizingProgress(lambda: now)
    progress.begins("http-proxy", planned, simulated=False)
    assert progress.left_s() == pytest.approx(planned.seconds)
    now += 4.0
    progress.reached(0, 1)
    assert progress.left_s() == pytest.approx(4.0 * (4 * 8 - 1)), "each load as long as the first, deployment included"
    now += 2.0
    progress.reached(0, 2)
    assert progress.left_s() == pytest.approx(3.0 * (4 * 8 - 2))
    progress.reached(1, 0)
    assert progress.left_s() == pytest.approx(3.0 * 3 * 8), "the stop rule left out the other six"
    progress.reached(4, 0)
    assert progress.left_s() == 0


def test_a_size_that_is_carried_over_takes_no_time() -> None:
    asked = load_specifications(SPECS / "http-proxy" / "deployment.json", SPECS / "http-proxy" / "requests.json")
    planned = cost(asked.deployment, asked.workload)
    progress = SizingProgress(lambda: 0.0)
    progress.begins("http-proxy", planned, simulated=False)
    progress.reached(3, 0)
    assert progress.left_s() == pytest.approx(planned.seconds / 4)


def test_simulated_time_is_not_a_persons() -> None:
    asked = load_specifications(SPECS / "clearwater" / "deployment.json", SPECS / "clearwater" / "workload.json")
    progress = SizingProgress()
    progress.begins("clearwater", cost(asked.deployment, asked.workload), simulated=True)
    progress.reached(0, 1)
    assert progress.left_s() is None
