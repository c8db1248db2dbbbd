"""Cache ways of NFs: planned, refused with numbers, and part of plan, matrix and record."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.report.details.capsule import choices_of
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.plan import OTHERS, CachePart, Plan
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import CacheWays, CpuLayout
from resources.libraries.python.planning.plan import drivers_of, make_plan
from resources.libraries.python.planning.reasons import Limit
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates
from tests.builders import SIM, cell_of, cpus
from tests.unit.csit_utils.builders import result
from tests.unit.examples import share

CSC = ServiceType.CSC


def machine(domain_of: int = 64, **cache: int) -> CpuLayout:
    """40 cores without SMT, a cache for each `domain_of` of them."""
    ways = CacheWays(**{"ways": 11, **cache}, domains={cpu: cpu // domain_of for cpu in range(40)})
    return cpus(40).model_copy(update={"cache": ways})


def plan(rows: int, columns: int, *ways: int | None, layout: CpuLayout | None = None, size: str = "1c") -> Plan:
    cell = cell_of(
        CSC,
        rows,
        columns,
        nf_sizes=(NfSize(size),),
        limits=tuple(Limits(cache_ways=each) for each in (ways * columns if len(ways) == 1 else ways)),
    )
    return make_plan(SIM, cell, layout or machine())


def by_owner(made: Plan) -> dict[str, dict[int, int]]:
    return {part.owner: part.masks for part in made.cache}


def test_nfs_get_adjacent_ways_and_devices_keep_theirs() -> None:
    assert by_owner(plan(2, 1, 2, layout=machine(reserved=0x600))) == {
        "nf-1-1": {0: 0x3},
        "nf-2-1": {0: 0xC},
        OTHERS: {0: 0x7F0},
    }
    assert by_owner(plan(2, 1, 2, layout=machine(reserved=0x3))) == {
        "nf-1-1": {0: 0x600},
        "nf-2-1": {0: 0x180},
        OTHERS: {0: 0x7F},
    }


def test_only_nfs_that_ask_have_ways_and_only_their_data_cpus_use_them() -> None:
    made = plan(1, 2, 3, None)
    (own, others) = made.cache
    assert (own.owner, own.cpus, others.owner) == ("nf-1-1", made.cores.cpus("nf-1-1"), OTHERS)


def test_each_cache_is_divided_for_itself() -> None:
    masks = by_owner(plan(4, 1, 5, layout=machine(domain_of=6, ways=16)))
    assert masks["nf-1-1"] == {0: 0x1F}, "CPU 5, alone in the first cache"
    assert masks["nf-2-1"] == {1: 0x1F}
    assert masks[OTHERS] == {0: 0xFFE0, 1: 0x8000}


@settings(deadline=None, max_examples=share(200))
@given(
    rows=st.integers(1, 4),
    ways=st.lists(st.integers(1, 4) | st.none(), min_size=1, max_size=3).filter(any),
    total=st.integers(4, 20),
    reserved=st.sampled_from([0, 1, 3]),
    at_top=st.booleans(),
    domain_of=st.sampled_from([2, 7, 64]),
)
def test_parts_never_overlap_and_none_has_gaps(
    *, rows: int, ways: list[int | None], total: int, reserved: int, at_top: bool, domain_of: int
) -> None:
    mask = reserved << (total - 2) if at_top else reserved
    layout = machine(domain_of, ways=total, reserved=mask)
    try:
        made = plan(rows, len(ways), *ways, layout=layout)
    except PlanError as error:
        assert "available" in str(error) or "shared with devices" in str(error)
        return
    asked = {f"nf-{row}-{node}": each for row in range(1, rows + 1) for node, each in enumerate(ways, 1) if each}
    masks = by_owner(made)
    assert set(masks) == {*asked, OTHERS}
    for domain in masks[OTHERS]:
        here = {owner: own[domain] for owner, own in masks.items() if domain in own}
        assert sum(here.values()) == (1 << total) - 1, "each way has one owner"
        assert here[OTHERS] & mask == mask
        for owner, own in here.items():
            assert own.bit_count() == asked.get(owner, own.bit_count())
            assert all(one + 1 == other for one, other in pairwise(bits(own)))


def bits(mask: int) -> list[int]:
    return [place for place in range(64) if mask >> place & 1]


@pytest.mark.parametrize(
    ("ways", "layout", "size", "reason"),
    [
        (3, machine(least=2), "1c", "needs 14 ways of cache 0 on DUT1, 11 available: 12 for 4 NFs, 2 for all others"),
        (1, machine(least=2), "1c", "nf-1-1 asks for 1 cache ways; a part has at least 2 on DUT1"),
        (1, machine(groups=4), "1c", "4 NFs ask for cache ways; DUT1 has 3 groups for them"),
        (1, cpus(40), "1c", "DUT1 divides no cache"),
        (1, machine(), "0.5c-shared", "nf-1-1 takes turns with another NF on a CPU"),
        (2, machine(reserved=0x18), "1c", "ways 0x18 of cache 0 on DUT1 are shared with devices"),
    ],
)
def test_what_cannot_be_divided_is_refused_with_the_numbers(
    ways: int, layout: CpuLayout, size: str, reason: str
) -> None:
    with pytest.raises(PlanError, match=reason):
        plan(4, 1, ways, layout=layout, size=size)


def test_the_matrix_has_the_reason() -> None:
    selection = parse_selection(service_types="CSC", cells="1x1,6x1", nf_sizes="1c", cache_ways="2")
    fits, refused = candidates(SIM, SIM.dut.layout, selection)
    assert fits.runs
    assert [reason.limit for reason in refused.reasons] == [Limit.CACHE]
    assert "needs 14 ways" in (refused.reason or "")


@pytest.mark.parametrize("text", ["0", "65", "two", "1.5", "-1"])
def test_other_ways_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"CACHE_WAYS '{text}': ways of the last-level cache of each NF, 1 to 64"):
        parse_selection(cache_ways=text)


def test_results_with_and_without_ways_are_different_systems() -> None:
    made = plan(1, 1, 2)
    asked = {"containers": "sim", "vswitch": "sim"}
    assert drivers_of(SIM, made.cell, asked) != drivers_of(SIM, plan(1, 1).cell, asked)
    assert made.suite_id != plan(1, 1).suite_id


def test_a_record_has_the_parts_and_can_be_repeated() -> None:
    made = plan(2, 1, 2)
    assert Plan.model_validate_json(made.model_dump_json()).cache == made.cache
    record = result(CSC, 2, 1).model_copy(update={"plan": made})
    asked = record.asked.model_copy(update={"cell": made.cell})
    assert choices_of(record.model_copy(update={"asked": asked}))["CACHE_WAYS"] == "2"
    assert str(CachePart(owner="nf-1-1", cpus=(4, 5), masks={0: 0x3})) == "2 (0x3) of cache 0, for CPUs 4, 5"
