"""Cleanup of several machines: what fails on one keeps nothing on the others from being removed."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.testbed.maintenance import cleanup


def left(machine: str, *, in_use: bool = False) -> Any:
    runtime = SimpleNamespace(name="a" * 64)
    found = SimpleNamespace(lines=lambda: ["a namespace"], prepared=True, in_use=in_use, who="of an unknown owner")
    return SimpleNamespace(machine=machine, left=found, stale=(runtime,))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps, of which those on DUT1 fail."""
    found: list[str] = []

    def step(what: str, place: Any) -> list[str]:
        found.append(f"{what} {place.name}")
        if place.name == "DUT1":
            raise CsitError(f"{place.name}: {what} failed")
        return [what]

    monkeypatch.setattr(cleanup, "join", lambda _: False)
    monkeypatch.setattr(cleanup, "_find", lambda place, **_: left(place.name, in_use=place.name == "busy"))
    monkeypatch.setattr(cleanup, "_tidy", lambda place, _: step("objects", place))
    monkeypatch.setattr(cleanup, "ask", lambda place, *_, **__: step("runtimes", place))
    monkeypatch.setattr(cleanup, "restore", lambda place: step("settings", place))
    return found


def machines(*names: str) -> Any:
    places = {name: SimpleNamespace(name=name, python="python3", reservable=None) for name in names}
    for place in places.values():
        place.connection = place
    return cast(Any, SimpleNamespace(places=places))


def test_all_machines_are_cleaned_and_all_failures_told(taken: list[str]) -> None:
    with pytest.raises(CsitError) as told:
        cleanup.remove(machines("DUT1", "TG"), [left("DUT1"), left("TG")], 0.0)
    steps = ("objects", "runtimes", "settings")
    assert str(told.value) == "; ".join(f"DUT1: {step} failed" for step in steps)
    assert sorted(taken) == sorted(f"{step} {name}" for step in steps for name in ("DUT1", "TG"))


def test_nothing_is_touched_where_a_run_is_alive(taken: list[str]) -> None:
    with pytest.raises(InUse, match="busy: a run is alive there"):
        cleanup.remove(machines("TG", "busy"), [left("TG"), left("busy", in_use=True)], 0.0)
    assert taken == []
