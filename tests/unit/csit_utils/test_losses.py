"""Who loses most: shares by kind of owner, and how busy its threads were."""

import pytest

from csit_utils.dataset.rows import HopRow, ThreadRow
from csit_utils.studies.density.analysis.losses import order, shares


def hop(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> HopRow:
    """A loss."""
    return HopRow("a", "t", "locate", 1e6, instance, "forward", owner, cause, "x", "y", lost, 0.0)


def thread(owner: str, cpu: int, running: float) -> ThreadRow:
    """A data thread."""
    return ThreadRow("a", "t", owner, "x", cpu, running, 0.0)


def test_instances_are_added_up_by_the_place_of_their_nf() -> None:
    found = shares([hop("nf-1-2", 30), hop("nf-7-2", 20), hop("vswitch", 40), hop("nf-1-1", 10, "inside")])
    assert [(each.owner, each.lost, each.share) for each in found] == [
        ("NF 2", 50, 0.5),
        ("vSwitch", 40, 0.4),
        ("NF 1", 10, 0.1),
    ]


def test_what_no_counter_saw_is_the_links_loss() -> None:
    assert [each.owner for each in shares([hop("nf-1-1", 5, "link"), hop("vswitch", 1)])] == ["link", "vSwitch"]


def test_the_time_of_an_owner_is_that_of_its_busiest_thread() -> None:
    threads = [thread("nf-1-1", 4, 0.5), thread("nf-2-1", 5, 0.9), thread("vswitch", 2, 0.3), thread("vswitch", 2, 0.4)]
    hops = [hop("nf-1-1", 1), hop("vswitch", 1), hop("generator", 1)]
    found = {each.owner: each.busy for each in shares(hops, threads)}
    assert found["NF 1"] == 0.9
    assert found["vSwitch"] == pytest.approx(0.7), "kernel threads on one CPU are one data thread"
    assert found["generator"] is None, "unknown is not 0"


def test_no_loss_is_no_share() -> None:
    assert shares([]) == []
    assert shares([hop("vswitch", 0)]) == []


def test_owners_stand_along_the_path() -> None:
    assert order(["link", "NF 10", "NF 2", "vSwitch-2", "vSwitch", "generator", "NF 2"]) == [
        "generator",
        "vSwitch",
        "vSwitch-2",
        "NF 2",
        "NF 10",
        "link",
    ]
