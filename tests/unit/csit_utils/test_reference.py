"""The published figures of FD.io: as printed, labelled, and never finer than they were printed."""

from collections import Counter
from dataclasses import replace

import pytest

from csit_utils.analysis.comparisons.comparability import likeness, resolution_pps
from csit_utils.analysis.comparisons.comparison import Outcome, compare
from csit_utils.analysis.grouping import all_series
from csit_utils.dataset.goal_words import profile_text
from csit_utils.dataset.reference import FDIO_2019, names, reference_items, title
from csit_utils.dataset.rows import NDR, OWN, PDR
from csit_utils.studies.density.analysis.density import matrices
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.search.profiles import LADDER

ROWS = [item.row for item in reference_items(FDIO_2019)]


def test_rows_say_that_they_were_not_measured_here() -> None:
    assert {row.origin for row in ROWS} == {"fdio-csit 1904 (published)"}
    assert {row.world for row in ROWS} == {"published"}
    assert all("not measured here" in row.evidence for row in ROWS)
    assert "CSIT-1904" in title(FDIO_2019)


def test_every_cell_of_the_slides_is_there_once() -> None:
    """19 cells with NF-1c and 23 with NF-0.5c fit on 28 cores, for each of three service types."""
    counted = Counter((row.service_type, row.nf_size) for row in ROWS)
    assert counted == {
        (kind, size): 19 if size == "1c" else 23 for kind in ("VSC", "CSC", "CSP") for size in ("1c", "0.5c")
    }
    assert len({row.anchor for row in ROWS}) == len(ROWS) == 126
    places = {(row.service_type, row.nf_size, row.nf_chains, row.nf_nodes) for row in ROWS}
    assert len(places) == 126


@pytest.mark.parametrize(
    ("service", "size", "place", "mpps"),
    [
        ("VSC", "1c", (1, 1), 4.6),
        ("VSC", "1c", (2, 1), 5.1),
        ("VSC", "1c", (4, 1), 4.6),
        ("VSC", "1c", (10, 1), 4.0),
        ("VSC", "1c", (1, 10), 0.9),
        ("CSC", "1c", (2, 4), 2.1),
        ("CSP", "1c", (1, 10), 6.6),
        ("VSC", "0.5c", (10, 2), 2.3),
        ("CSC", "0.5c", (6, 4), 1.8),
        ("CSP", "0.5c", (2, 10), 5.5),
    ],
)
def test_figures_are_as_printed(service: str, size: str, place: tuple[int, int], mpps: float) -> None:
    (series,) = (one for one in all_series(ROWS) if (one.service_type, one.nf_size) == (service, size))
    (matrix,) = matrices(ROWS, series)
    assert matrix.metric == NDR
    cell = matrix.cells[place]
    assert cell.value_pps == mpps * 1e6
    assert cell.upper_pps == cell.value_pps, "no bound was printed"


def test_cores_are_counted_as_the_slides_count_them() -> None:
    """2 + 1.5 S N for NF-1c, 2 + S N for NF-0.5c, against the slides' own table."""
    for item in reference_items(FDIO_2019):
        row = item.row
        per_nf = 1.5 if row.nf_size == "1c" else 1.0
        assert row.slide_cores == 2 + per_nf * row.nf_chains * row.nf_nodes
        assert row.slide_cores <= 28


def test_they_are_no_finer_than_printed() -> None:
    row = ROWS[0]
    assert resolution_pps(row, NDR) == 50_000


def test_ones_own_ndr_may_be_laid_beside_them_and_a_simulated_one_may_not() -> None:
    """The question is the same (no loss); the reader is told of the rounding and of what the slides leave out."""
    published = ROWS[0]
    own = replace(published, origin=OWN, goals=profile_text(LADDER))
    found = likeness(own, published, NDR)
    assert found.alike
    assert found.remarks == (
        "B does not report the length of its trials",
        "B does not report its exceed ratio",
        "NDR of B is rounded to 100,000 pps, so it may be off by 50,000 pps",
        "A is a result of csit-density and B of fdio-csit 1904 (published)",
    )
    assert not likeness(replace(own, simulated=True), published, NDR).alike
    assert not likeness(own, published, PDR).alike, "the slides print no PDR"


@pytest.mark.parametrize(
    ("own_pps", "outcome"),
    [
        ((4.56e6, 4.58e6), Outcome.CANNOT_TELL),
        ((4.62e6, 4.64e6), Outcome.CANNOT_TELL),
        ((4.72e6, 4.74e6), Outcome.LOWER),
        ((4.35e6, 4.48e6), Outcome.HIGHER),
    ],
)
def test_a_difference_below_the_printed_digit_means_nothing(own_pps: tuple[float, float], outcome: Outcome) -> None:
    """4.6 Mpps stands for 4.55 to 4.65."""
    published = ROWS[0]
    lower, upper = own_pps
    own = replace(published, origin=OWN, testbed="t1", goals=profile_text(LADDER), ndr_complete=True)
    own = replace(own, ndr_lower_pps=lower, ndr_upper_pps=upper)
    (change,) = compare([own], [published]).changes
    assert change.outcome is outcome


def test_a_set_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="no reference set 'fdio-2020'; choose from fdio-2019"):
        reference_items("fdio-2020")
    assert names() == (FDIO_2019,)
