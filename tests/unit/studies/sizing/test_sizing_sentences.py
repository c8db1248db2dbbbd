"""Previews of sizings."""

import re
from pathlib import Path

import pytest

from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.studies.sizing.planning.cost import cost
from resources.libraries.python.studies.sizing.run import cost_in_words

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
def test_the_cost_of_a_sizing_is_shown_before_it_runs(deployment: str, workload: str, words: str) -> None:
    asked = load_specifications(SPECS / deployment, SPECS / workload)
    assert re.fullmatch(words, cost_in_words(cost(asked.deployment, asked.workload)))
