"""The observer of the noise floor: gaps of a scripted clock, counters of other machines' files."""

from itertools import accumulate, repeat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.testbed.node.scripts import noise

STEP_NS = 100


@given(st.lists(st.integers(noise.THRESHOLD_NS, 10**7), max_size=30))
def test_every_gap_is_counted_in_its_class(gaps: list[int]) -> None:
    steps = [step for gap in gaps for step in (STEP_NS, gap)]
    readings = accumulate([0, *steps, *repeat(STEP_NS, 3)])
    durations, longest = noise._gaps(lambda: next(readings), sum(steps) + STEP_NS)
    assert longest == max(gaps, default=0)
    assert sum(count for _, count in durations) == len(gaps)
    for edge, count in durations:
        inside = [gap for gap in gaps if edge <= gap < edge * 9 / 8]
        assert len(inside) >= count and edge.bit_length() >= 4


def test_shorter_gaps_do_not_count() -> None:
    readings = accumulate([0, *repeat(noise.THRESHOLD_NS - 1, 100)])
    assert noise._gaps(lambda: next(readings), 50 * noise.THRESHOLD_NS) == ([], 0)


def test_counters_of_the_kernel_are_those_of_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()

    def write(ticks: int, timer: int, nic: int, stolen: int) -> dict[str, object]:
        (tmp_path / "proc/stat").write_text(f"cpu  1 2\ncpu1 {ticks} 0 0 0 0 0 0 {stolen} 0 0\n", encoding="ascii")
        (tmp_path / "proc/interrupts").write_text(
            "           CPU0       CPU1\n"
            f"  24:          7          {nic}   PCI-MSI-0000:00:02.0   1-edge      eth0-rx\n"
            f" LOC:          1          {timer}   Local timer interrupts\n"
            " ERR:          0\n",
            encoding="ascii",
        )
        return noise._accounts(tmp_path, [1])[1]

    found = noise._difference(write(1, 10, 5, 100), write(2, 35, 6, 150))
    assert found == {
        "interrupts": {"Local timer interrupts": 25, "24 PCI-MSI-0000:00:02.0 1-edge eth0-rx": 1},
        "stolen_s": 0.5,
        "smis": None,
    }


def test_a_machine_without_these_files_has_no_counters(tmp_path: Path) -> None:
    empty = noise._accounts(tmp_path, [3])[3]
    assert noise._difference(empty, empty) == {"interrupts": {}, "stolen_s": None, "smis": None}
