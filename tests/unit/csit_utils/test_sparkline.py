"""Small drawings of series."""

import re

from csit_utils.report.pages.trend import HEIGHT, WIDTH, LevelSpan, Mark, sparkline


def numbers(svg: str, kind: str) -> list[str]:
    """Paths of a kind."""
    return re.findall(rf'<path class="{kind}" d="([^"]*)"', svg)


def test_a_gap_interrupts_the_line_and_a_lone_night_is_a_dot() -> None:
    (line,) = numbers(sparkline([1.0, 1.0, None, 1.0, None, 1.0, 1.0]), "v")
    assert [part.count("L") for part in line.split("M")[1:]] == [1, 0, 1]
    assert line.count("h.1") == 1


def test_a_regression_points_down_and_one_that_is_only_suspected_is_open() -> None:
    svg = sparkline(
        [2.0, 1.0, 2.0], (LevelSpan(0, 0, 2.0), LevelSpan(1, 2, 1.5)), [Mark(1, 1.0, False), Mark(2, 2.0, True, True)]
    )
    assert len(numbers(svg, "down")) == 1
    assert len(numbers(svg, "up open")) == 1
    assert numbers(svg, "l")[0].count("H") == 2


def test_all_stays_inside_and_no_night_at_all_is_an_empty_drawing() -> None:
    svg = sparkline([0.0, 1e9, 5e8], failed=[1])
    places = [float(number) for number in re.findall(r"[ML]([\d.]+)", svg)]
    heights = [float(number) for number in re.findall(r"[ML][\d.]+ ([\d.]+)", svg)]
    assert max(places) <= WIDTH
    assert max(heights) <= HEIGHT
    assert "path" not in sparkline([None, None])
    assert len(numbers(sparkline([None, None], failed=[0, 1]), "f")) == 1


def test_noise_of_a_quiet_cell_stays_flat() -> None:
    (quiet,) = numbers(sparkline([100.0, 100.1, 99.9]), "v")
    heights = [float(number) for number in re.findall(r"[ML][\d.]+ ([\d.]+)", quiet)]
    assert max(heights) - min(heights) < 2
