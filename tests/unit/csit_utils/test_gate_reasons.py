"""What a gate says of each cell: judged or not, and the reason that names the cell it is about."""

from dataclasses import replace

import pytest
from defusedxml.ElementTree import fromstring

from csit_utils.analysis.comparisons.comparison import compare
from csit_utils.analysis.comparisons.gate import Decision, decide
from csit_utils.commands.results.gate import junit_xml
from csit_utils.dataset.rows import TestRow
from tests.unit.csit_utils.histories import nights, row

RATE = 5e6
ONE, TWO = ("CSC", 1, 1), ("CSC", 2, 1)


def gate(baseline: list[TestRow], candidate: list[TestRow], tolerance: float = 0.0) -> Decision:
    return decide(compare(baseline, candidate), candidate, tolerance)


def reasons(found: Decision) -> dict[str, str]:
    return {each.name: each.reason for each in found.unjudged}


def test_a_cell_that_got_faster_is_judged_and_kept() -> None:
    found = gate(nights(6, lambda _: RATE), nights(6, lambda _: 1.1 * RATE))
    assert (found.judged, len(found.kept), found.fallen, found.unjudged) == (2, 2, (), ())


def test_the_largest_fall_comes_first() -> None:
    baseline = [*nights(6, lambda _: RATE), *nights(6, lambda _: RATE, cell=TWO)]
    candidate = [*nights(6, lambda _: 0.95 * RATE), *nights(6, lambda _: 0.8 * RATE, cell=TWO)]
    changes = [each.change for each in gate(baseline, candidate).fallen]
    assert changes == sorted(changes)
    assert changes[0] == pytest.approx(-0.2, abs=0.02)
    assert [each.dimensions.instances for each in gate(baseline, candidate, tolerance=0.1).fallen] == [2, 2]


def test_unlike_figures_are_not_judged_for_the_reason_that_makes_them_unlike() -> None:
    found = gate(nights(3, lambda _: RATE), nights(3, lambda _: 0.5 * RATE, world="sim", simulated=True))
    assert found.judged == 0
    assert len(found.unjudged) == 2
    assert all("simulated" in reason and "overlap" not in reason for reason in reasons(found).values())


def test_an_uncertain_cell_is_named_with_its_reason() -> None:
    found = gate([row(RATE)], [replace(row(0.999 * RATE), run="other")])
    assert sorted(name.split()[-1] for name in reasons(found)) == ["NDR", "PDR"]
    why = "one run per side, too few cells to estimate the noise, and bounds that are hardly apart"
    assert set(reasons(found).values()) == {why}


def test_a_cell_without_a_baseline_says_so() -> None:
    found = gate(nights(3, lambda _: RATE), [*nights(3, lambda _: RATE), *nights(3, lambda _: RATE, cell=TWO)])
    assert set(reasons(found).values()) == {"the baseline has no figure"}
    assert all(" 2x1 " in name for name in reasons(found))


def test_a_failure_is_the_reason_of_its_own_cell_only() -> None:
    baseline = [*nights(3, lambda _: RATE), *nights(3, lambda _: RATE, cell=TWO)]
    candidate = [row(None), row(RATE, cell=("CSP", 1, 1))]
    found = reasons(gate(baseline, candidate))
    for place, why in {
        "CSC 1x1": "the candidate's test ended with FAIL: no traffic at hop 2",
        "CSC 2x1": "the candidate has no figure",
        "CSP 1x1": "the baseline has no figure",
    }.items():
        assert {reason for name, reason in found.items() if place in name} == {why}, place


@pytest.mark.parametrize(
    ("message", "reason"), [("VPP died:\n core dumped\n", " FAIL: VPP died: core dumped"), ("", " FAIL")]
)
def test_a_reason_is_one_line(message: str, reason: str) -> None:
    (found,) = set(reasons(gate(nights(3, lambda _: RATE), [replace(row(None), message=message)])).values())
    assert found.endswith(reason)


def test_a_failed_test_is_an_error_of_junit_and_a_skipped_one_is_skipped() -> None:
    baseline = [*nights(3, lambda _: RATE), *nights(3, lambda _: RATE, cell=TWO)]
    suite = fromstring(junit_xml(gate(baseline, [row(None), row(None, cell=TWO, status="SKIP")])))
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "0", "2", "2"]
    assert all("1x1" in str(each.get("name")) for each in suite if each.find("error") is not None)


def test_a_failed_test_of_another_tool_is_the_reason_though_it_names_no_goals() -> None:
    """A tool that measured nothing has no definition of a figure either."""
    found = gate(nights(3, lambda _: RATE), [row(None, goals="")])
    assert set(reasons(found).values()) == {"the candidate's test ended with FAIL: no traffic at hop 2"}
    found = gate(nights(3, lambda _: RATE), [row(None, goals="", profile="other")])
    assert set(reasons(found).values()) == {"the candidate has no figure"}


def test_cells_of_several_testbeds_are_told_apart() -> None:
    baseline, candidate = (
        [each for testbed in ("lab-a", "lab-b") for each in nights(6, lambda _, rate=rate: rate, testbed=testbed)]
        for rate in (RATE, 0.5 * RATE)
    )
    found = gate(baseline, candidate)
    names = [each.name for each in found.fallen]
    assert len(set(names)) == 4
    assert sorted(name.split(" CSC ")[0] for name in names) == ["lab-a (lab)"] * 2 + ["lab-b (lab)"] * 2
    cases = fromstring(junit_xml(found)).findall("testcase")
    assert [each.get("name") for each in cases] == names
    assert {each.get("classname") for each in cases} == {"lab-a.CSC", "lab-b.CSC"}


def test_cells_of_one_testbed_are_not_named_by_it() -> None:
    found = gate(nights(6, lambda _: RATE), nights(6, lambda _: 0.5 * RATE, testbed="lab-b"))
    assert all(each.name.startswith("CSC 1x1 ") for each in found.fallen)


def test_a_test_that_passed_without_the_figure_is_no_failure() -> None:
    passed = row(RATE, pdr_lower_pps=None, pdr_upper_pps=None, ndr_lower_pps=None, ndr_upper_pps=None)
    found = reasons(gate(nights(3, lambda _: RATE), [passed]))
    assert set(found.values()) == {"the candidate has no figure"}
