"""CPUs are asked to stay awake, and where the kernel takes no such wish everything goes on without it."""

from pathlib import Path

from resources.libraries.python.drivers.host.cpu.cpu import kept_awake


def test_zero_microseconds_are_asked_for(tmp_path: Path) -> None:
    requests = tmp_path / "cpu_dma_latency"
    requests.touch()
    with kept_awake(requests):
        assert requests.read_bytes() == bytes(4)


def test_a_kernel_that_takes_no_requests_is_left_alone(tmp_path: Path) -> None:
    went_on = False
    with kept_awake(tmp_path / "none"):
        went_on = True
    assert went_on
    assert not (tmp_path / "none").exists()
