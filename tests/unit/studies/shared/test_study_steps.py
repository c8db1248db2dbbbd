"""Steps of a study: what is tried once more, and what is removed."""

from collections.abc import Callable

import pytest

from resources.libraries.python.errors import CsitError, NotReady, RunStopped, SystemBroken, Unsupported
from resources.libraries.python.studies.shared.steps import StepOutcome, measure_again, measure_step
from resources.libraries.python.testbed.deployment.health import reason_of


class Bench:
    """Fails by the given errors, then succeeds."""

    def __init__(self, *errors: Exception, removal: str | None = None) -> None:
        self._errors = list(errors)
        self._removal = removal
        self.calls: list[str] = []

    def measure(self) -> int:
        self.calls.append("measure")
        if self._errors:
            raise self._errors.pop(0)
        return 7

    def remove(self) -> str | None:
        self.calls.append("remove")
        return self._removal


def outcome(bench: Bench) -> StepOutcome[int]:
    return measure_step("1x2", bench.measure, bench.remove)


BREAKAGES: list[Callable[[], Exception]] = [
    lambda: SystemBroken("the NF is gone"),
    lambda: NotReady("the NF", 1.0, "nothing"),
    lambda: OSError("broken pipe"),
]


@pytest.mark.parametrize("error", BREAKAGES)
def test_what_breaks_the_system_is_tried_once_more(error: Callable[[], Exception]) -> None:
    bench = Bench(error())
    assert outcome(bench) == StepOutcome(7, "", (f"1x2: measured once more: {reason_of(error())}",))
    assert bench.calls == ["measure", "remove"] * 2


def test_twice_is_enough() -> None:
    bench = Bench(SystemBroken("the NF is gone"), SystemBroken("the bridge is gone"))
    assert outcome(bench) == StepOutcome(None, "the bridge is gone", ("1x2: measured once more: the NF is gone",))
    assert bench.calls == ["measure", "remove"] * 2


def test_what_cannot_work_is_not_tried_again() -> None:
    bench = Bench(Unsupported("suricata missing"))
    assert outcome(bench) == StepOutcome(None, "suricata missing", ())
    assert bench.calls == ["measure", "remove"]


def test_failed_removals_are_reported() -> None:
    left, again = "1x2: a bridge was left", "1x2: measured once more: no"
    assert outcome(Bench(CsitError("no"), removal="a bridge was left")).notes == (left, again, left)


def test_the_end_of_the_run_goes_through_after_the_removal() -> None:
    bench = Bench(RunStopped("no space"))
    with pytest.raises(RunStopped):
        outcome(bench)
    assert bench.calls == ["measure", "remove"]


@pytest.mark.parametrize(
    ("errors", "calls", "notes"),
    [
        ((), 1, []),
        ((SystemBroken("the NF is gone"),), 2, ["the search: measured once more: the NF is gone"]),
    ],
)
def test_a_search_that_breaks_the_system_is_repeated_with_a_note(
    errors: tuple[Exception, ...], calls: int, notes: list[str]
) -> None:
    bench, said = Bench(*errors), list[str]()
    assert measure_again("the search", bench.measure, said) == 7
    assert (len(bench.calls), said) == (calls, notes)


@pytest.mark.parametrize("errors", [(Unsupported("no"),), (SystemBroken("no"), SystemBroken("no"))])
def test_an_error_of_a_search_goes_through_where_it_breaks_nothing_or_twice(errors: tuple[CsitError, ...]) -> None:
    bench = Bench(*errors)
    with pytest.raises(type(errors[0]), match="no"):
        measure_again("the search", bench.measure, [])
    assert len(bench.calls) == len(errors)
