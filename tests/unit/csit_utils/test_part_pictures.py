"""Picture of the parts of suspect chains: measured delay and loss of each, beside what the VNFs alone predict."""

import pytest

from csit_utils.studies.chains.study import PAGE
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.studies.chains.analysis.prediction import DELAY, compare_parts
from resources.libraries.python.studies.chains.model import (
    ChainRun,
    ChainStudy,
    Excess,
    PartDelay,
    PartLoss,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import PATH, Chain
from tests.unit.csit_utils.characterized_pages import drawn
from tests.unit.csit_utils.study_records import chain_studied
from tests.unit.studies.chains.chain_runs import chain, run, spec_of, workload

BPS = 4e6
BOTH, NAT, GATEWAY = chain("nat", "gateway"), chain("nat"), chain("gateway")


def of(what: Chain, delays_us: dict[str, float], losses: dict[str, float]) -> ChainRun:
    """A run with delays and losses by part."""
    delays = [PartDelay(owner=own, mean_s=us * 1e-6, median_s=us * 1e-6, packets=9) for own, us in delays_us.items()]
    lost = [PartLoss(owner=own, cause="inside", ratio=ratio) for own, ratio in losses.items()]
    more = {"delays": tuple(delays), "losses": tuple(lost), "idle_latency_s": 1e-6 * sum(delays_us.values())}
    return run(what, BPS, BPS * (1 - sum(losses.values()))).model_copy(update=more)


def runs(nat_us: float) -> tuple[ChainRun, ...]:
    """All of a study in which nat takes as long as given in the chain."""
    return (
        of(PATH, {VSWITCH: 2.0}, {}),
        of(NAT, {"nat": 10.0, VSWITCH: 5.0}, {}),
        of(GATEWAY, {"gateway": 20.0, VSWITCH: 6.0}, {"gateway": 0.01}),
        of(BOTH, {"nat": nat_us, "gateway": 21.0, VSWITCH: 9.5}, {"nat": 0.2}),
    )


def study(*repetitions: float) -> ChainStudy:
    """A study whose chain is a suspect; repeated where there is more than one delay of nat."""
    excess = Excess(
        chain=BOTH, owner="nat", workload=workload(BPS), feature=DELAY, measured=4e-5, expected=1e-5,
        excess=3e-5, low=2e-5, high=4e-5, least=1e-5, runs=1,
    )  # fmt: skip
    first, *more = map(runs, repetitions)
    return ChainStudy(
        spec=spec_of(("nat", "gateway"), volumes_bps=(BPS,)),
        chains=3,
        path=first[:1],
        runs=first[1:],
        repeated=tuple(each for again in more for each in again if each.chain != PATH),
        suspects=(Suspect(chain=BOTH, mean_distance=1.0, threshold=0.5, distances=(), worse=(excess,)),),
    )


def test_each_part_has_a_bar_for_what_was_measured_and_one_for_the_prediction() -> None:
    figure = drawn(PAGE, "parts", chain_studied(study(40.0)))
    assert figure.selectors == (("1. nat > gateway",), ("delay without load", "loss"))
    measured, predicted = figure.variants["1. nat > gateway|delay without load"]["data"]
    assert measured["x"] == predicted["x"] == ["nat", "gateway", "vswitch"], "in the order of the chain"
    assert measured["y"] == pytest.approx([40.0, 21.0, 9.5])
    assert predicted["y"] == pytest.approx([10.0, 20.0, 5.0 + 6.0 - 2.0]), "the vSwitch less the path"
    assert "error_y" not in measured, "the spread of single runs is not known"
    lost, foreseen = figure.variants["1. nat > gateway|loss"]["data"]
    assert lost["y"] == pytest.approx([20.0, 0.0, 0.0])
    assert foreseen["y"] == pytest.approx([0.0, 1.0, 0.0])


def test_repeated_runs_give_the_interval() -> None:
    again = study(90.0, 39.0, 40.0, 41.0)
    figure = drawn(PAGE, "parts", chain_studied(again))
    measured, predicted = figure.variants["1. nat > gateway|delay without load"]["data"]
    assert measured["y"][0] == pytest.approx(40.0), "the first run, by which it was chosen, does not decide"
    (rows,) = compare_parts((*again.path, *again.runs, *again.repeated), {(BOTH, workload(BPS))}).values()
    half = next(row.half for row in rows if (row.owner, row.feature) == ("nat", DELAY))
    assert half is not None and half > 0
    assert measured["error_y"]["array"][0] == pytest.approx(1e6 * half)
    assert "error_y" not in predicted


def test_nothing_is_shown_without_parts_or_suspects() -> None:
    found = study(40.0)
    assert drawn(PAGE, "parts", chain_studied(found.model_copy(update={"suspects": ()}))) is None
    bare = {"runs": tuple(each.model_copy(update={"delays": None, "losses": None}) for each in found.runs)}
    assert drawn(PAGE, "parts", chain_studied(found.model_copy(update=bare))) is None
