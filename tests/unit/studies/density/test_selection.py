"""Selections read what people write, and refuse the rest in one sentence."""

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.density.model.selection import parse_selection


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1x1,1x2,2x1", ((1, 1), (1, 2), (2, 1))),
        ("{1,2}x{1,4}", ((1, 1), (1, 4), (2, 1), (2, 4))),
        ("1-3x2", ((1, 2), (2, 2), (3, 2))),
        ("{1-2,5}x1, 1x1", ((1, 1), (2, 1), (5, 1))),
        ("2R4C, 1-2x1, 1r1c", ((2, 4), (1, 1), (2, 1))),
        ("32x32", ((32, 32),)),
    ],
)
def test_cells_are_selected_from_the_drafts_grid_or_any_other(text: str, points: tuple[tuple[int, int], ...]) -> None:
    assert parse_selection(cells=text).points == points
    assert len(parse_selection().points) == 36


def test_sizes_for_each_nf_apply_to_services_of_that_length_only() -> None:
    cells = parse_selection(service_types="csc", cells="1x1-3", nf_sizes="1C,2c+0.5c,3c").cells()
    assert [(cell.nf_nodes, cell.size_name) for cell in cells] == [
        (1, "1c"),
        (2, "1c"),
        (3, "1c"),
        (2, "2c+0.5c"),
        *((nodes, "3c") for nodes in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("cells", "1x", "invalid cells at '1x'"),
        ("cells", "0x1", "count from 1"),
        ("cells", "3-1x1", "runs backwards"),
        ("cells", "", "no cells"),
        ("nf_sizes", "1.5c", "no NF size '1.5c'; there are 0.5c, 1c, 2c and so on to 256c"),
        ("service_types", "CSX", "no service type 'CSX'; choose from VSC, CSC, CSP"),
        ("vswitch", "3", "no vSwitch size '3'"),
        ("frames", "63B", "no frame size '63B'"),
        ("frames", " ", "selects nothing"),
        ("frames", "64B-1000001f", "1,000,001 flows; a service instance has 1 to 1,000,000 in each direction"),
        ("frames", "63B-10f", "no frame size '63B'"),
        ("flows", "0", "invalid number of flows '0'; expected 1 to 1000000"),
        ("flows", "2000000", "2,000,000 flows; a service instance has 1 to 1,000,000"),
        ("flows", "1k", "invalid number of flows '1k'"),
        ("flows", ",", "selects nothing"),
        ("cells", "1x1000000", "a cell of 1,000,000 NFs; at most 1,024 are possible"),
        ("cells", "1x1,33x32", "a cell of 1,056 NFs"),
        ("cells", "{1-1000}x{1}", "NFs in all cells together; at most 100,000 are possible"),
        ("cells", f"{'z' * 5000}", r"characters\)'; expected rows x columns"),
    ],
)
def test_unreadable_input_and_what_cannot_be_planned_in_time_is_refused(option: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        parse_selection(**{option: value})
    assert len(str(caught.value)) <= 400


def test_each_number_of_flows_goes_with_each_frame() -> None:
    found = parse_selection(frames="64B,IMIX-7f", flows="auto,1,001,1000000").frames
    assert [(frame.name, frame.flows) for frame in found] == [
        ("64B", None), ("64B-1f", 1), ("64B-1000000f", 1_000_000),
        ("IMIX-7f", 7), ("IMIX-1f", 1), ("IMIX-1000000f", 1_000_000),
    ]  # fmt: skip
    assert [frame.size_name for frame in found] == ["64B"] * 3 + ["IMIX"] * 3
    assert "flows" not in found[0].model_dump_json()
