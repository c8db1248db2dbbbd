"""Choice of the driver that sends on a generator's ports."""

from collections.abc import Mapping
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.testbed.deployment import loop_back
from tests.builders import Altered, qualification, qualified_point, raising, shipped

Found = QualifiedPoint | CsitError
FAILED = CsitError("nothing came back")


def point(loss_free_pps: float | None, rate_error: float | None = 0.001) -> QualifiedPoint:
    return qualified_point(loss_free_pps=loss_free_pps, rate_error=rate_error)


def chosen(monkeypatch: pytest.MonkeyPatch, found: Mapping[str | None, Found]) -> tuple[str | None, tuple[str, ...]]:
    def qualify(*_: object, way: str | None, **__: object) -> Qualification:
        measured = found[way]
        return raising(measured)() if isinstance(measured, CsitError) else qualification(measured)

    monkeypatch.setattr(loop_back, "qualify", qualify)
    world: Any = Altered(None)
    return loop_back.fastest_way(shipped("local"), world, qualification().key, 2)


@pytest.mark.parametrize(
    ("own", "other", "way"),
    [
        (point(1e6), point(1.04e6), None),
        (point(1e6), point(1.06e6), "af_xdp"),
        (point(1e6), point(2e6, rate_error=0.02), None),
        (point(1e6), point(2e6, rate_error=None), None),
        (point(1e6, rate_error=0.02), point(5e5), "af_xdp"),
        (point(None), point(None), None),
        (point(1e6), FAILED, None),
    ],
)
def test_another_driver_sends_only_if_it_is_clearly_faster_and_keeps_its_rate(
    monkeypatch: pytest.MonkeyPatch, own: Found, other: Found, way: str | None
) -> None:
    best, said = chosen(monkeypatch, {None: own, "af_xdp": other})
    assert best == way
    assert [line.partition(":")[0] for line in said] == ["auto", "af_xdp"]


def test_a_driver_that_fails_is_left_out_and_its_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = chosen(monkeypatch, {None: point(1e6), "af_xdp": FAILED})
    assert str(FAILED) in said[1]


def test_a_testbed_whose_own_driver_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CsitError, match=str(FAILED)):
        chosen(monkeypatch, {None: FAILED, "af_xdp": point(1e6)})
