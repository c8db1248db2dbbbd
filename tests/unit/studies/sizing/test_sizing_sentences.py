"""Previews of sizings."""

import re
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import MeasuredSize, Share, Size, WatchedResource
from resources.libraries.python.studies.sizing.planning.cost import cost
from resources.libraries.python.studies.sizing.run import cost_in_words
from resources.libraries.python.studies.sizing.search.size_search import outcome, used

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


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"capacity": 400.0}, "capacity 400 calls/s"),
        ({"capacity": 400.0, "at_top": True}, "capacity 400 calls/s or more"),
        ({"capacity": 400.0, "bottleneck": "sprout"}, "capacity 400 calls/s, sprout is busiest"),
        ({"capacity": None}, "does not carry the lowest load"),
        ({"capacity": None, "failed": "bono ended"}, "could not be measured: bono ended"),
    ],
)
def test_the_outcome_of_a_size(found: dict[str, Any], words: str) -> None:
    size = Size(components={"bono": Share(instances=1, flavor="small")})
    sized = MeasuredSize(size=size, name="bn1s", vcpus=1, memory_mb=2048, offered=(), **found)
    assert outcome(sized, "calls/s") == words


def test_use_of_the_network_is_a_bit_rate_and_that_of_others_a_share() -> None:
    assert [used(0.125, watch) for watch in (WatchedResource.CPU, WatchedResource.MEMORY)] == ["12 %", "12 %"]
    assert used(12_345_678, WatchedResource.NETWORK) == "12.3 Mbit/s"
    assert used(1e12 - 1, WatchedResource.NETWORK) == "1000000.0 Mbit/s"
