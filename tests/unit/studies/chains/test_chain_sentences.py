"""What a study of chains says before, while and after it is measured."""

import re

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, headline, sentences
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.chains.model.spec import load_chains
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.integration.robot_runs import PROJECT

SPEC = load_chains(specification_file("chains/four-vnfs.yaml"), {"duration_s": "1"})
SIM = load_topology(PROJECT / "topologies" / "sim.yaml")


@pytest.fixture(scope="module")
def study() -> ChainStudyTest:
    world = SimulatedTestbed(SIM)
    return ChainStudyTest(SIM, world, SPEC, world.environment())


@pytest.fixture(scope="module")
def measured(study: ChainStudyTest) -> ChainStudy:
    return study.run()


def test_the_preview_counts_chains_names_policies_and_planted_faults(study: ChainStudyTest) -> None:
    first, *policies, more, fault = study.preview()
    assert first.startswith("11 chains (4 of 1, 7 of 2 VNFs) under 4 workloads of 1 s")
    assert [line.split("'")[1] for line in policies] == list(SPEC.policies)
    assert more == "chains that deviate from their VNFs alone are measured again, 2 times, with those VNFs"
    assert fault == "planted fault: in nat > gateway nat is limited to 0.02 CPUs"


def test_suspects_come_with_rank_fault_and_reasons(measured: ChainStudy) -> None:
    cause, first, reason, *_ = sentences(measured)
    assert cause.startswith("only nat > gateway has nat throttled ")
    assert first.startswith("suspect 1 by mean distance and worse than predicted: nat > gateway, mean Cook's distance ")
    assert first.endswith("; a fault was planted: nat is limited to 0.02 CPUs")
    assert reason.startswith("    ")


def test_chains_that_were_not_measured_are_named_with_the_reason(measured: ChainStudy) -> None:
    run = measured.runs[0].model_copy(update={"failed": "no traffic"})
    bare = measured.model_copy(update={"runs": (run,), "suspects": (), "causes": ()})
    *_, failed = sentences(bare)
    assert "; no suspects; 7 chains are compared with what the VNFs alone predict, by repeated runs" in headline(bare)
    assert failed == "not measured: gateway: no traffic"
    assert headline(bare.model_copy(update={"judged": ()})).endswith("; no suspects")


@pytest.mark.parametrize("feature", ["waiting_percent", "throttled_percent"])
def test_no_more_than_all_of_the_time_is_spent_waiting(measured: ChainStudy, feature: str) -> None:
    """Several threads of a VNF may wait for 180 % of the time."""
    (cause,) = measured.causes[:1]
    more = cause.model_copy(update={"feature": feature, "excess": 180.0, "smallest": 180.0, "low": -2.0, "high": 362.0})
    words = cause_in_words(more)
    assert "1.8 threads on average" in words and f"95 % interval {MINUS}2 % of the time to 3.62 threads" in words
    assert not re.search(r"[1-9]\d\d(\.\d+)? % of the time", words)
