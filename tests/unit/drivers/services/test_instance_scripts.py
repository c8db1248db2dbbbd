"""What scripts of users are told, and what is understood of what they say."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.host.cgroups.cgroups import GroupLimits
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.instances import ServiceInstance
from resources.libraries.python.drivers.services.scripts import answer, environment
from resources.libraries.python.errors import CsitError
from resources.libraries.python.testbed.roles.service import LoadReport

SCRIPT = Path("/specs/load.py")


@given(number=st.floats(min_value=0, allow_nan=False, allow_infinity=False), before=st.text(max_size=40))
def test_the_indicator_is_the_last_line_whatever_comes_before(number: float, before: str) -> None:
    assert answer(f"{before}\nindicator {number!r}\n\n", SCRIPT) == LoadReport(number)
    last = json.dumps({"indicator": number, "failed": 3, "who": "me", "sure": True, "ratio": float("nan")})
    assert answer(f"{before}\n{last}", SCRIPT) == LoadReport(number, {"failed": 3.0})


@pytest.mark.parametrize(
    "said",
    ["done", "indicator nan", "indicator -1", "indicator 12\ngood bye", '{"indicator": true}', '{"indicator": 12'],
)
def test_rubbish_is_quoted(said: str) -> None:
    with pytest.raises(CsitError, match=r"reported no indicator: '.+'; the last line has to be") as caught:
        answer(said, SCRIPT)
    assert said.splitlines()[-1] in str(caught.value)


@given(seconds=st.lists(st.floats(min_value=0, allow_nan=False, allow_infinity=False), max_size=5))
def test_each_second_may_be_reported_as_a_line_or_in_a_list(seconds: list[float]) -> None:
    lines = "".join(f"second {value!r}\n" for value in seconds)
    assert answer(f"begin\nsecond attempt\n{lines}indicator 7", SCRIPT).seconds == tuple(seconds)
    text = json.dumps({"indicator": 7, "seconds": seconds})
    assert answer(f"second 5\n{text}", SCRIPT).seconds == tuple(seconds)


@pytest.mark.parametrize("seconds", ["[1, -1]", "[true]", "[[1]]", "7", "{}"])
def test_a_list_of_seconds_with_something_else_in_it_is_refused(seconds: str) -> None:
    with pytest.raises(CsitError, match=r'/specs/load.py: "seconds" has to be a list'):
        answer(f'{{"indicator": 7, "seconds": {seconds}}}', SCRIPT)


@given(st.text(max_size=80))
def test_any_text_is_an_indicator_or_one_sentence(said: str) -> None:
    try:
        assert answer(said, SCRIPT).indicator >= 0
    except CsitError as error:
        assert str(SCRIPT) in str(error)


def test_facts_are_lines_that_say_so() -> None:
    lines = ["starting", "fact proxy HAProxy 2.6", "fact short", " fact origin nginx  1.22 ", "facts are none"]
    said = "\n".join([*lines, f"fact long {'x' * 900}"])
    assert scripts.facts(said) == {"proxy": "HAProxy 2.6", "origin": "nginx  1.22", "long": "x" * 200}


def test_scripts_see_nothing_of_the_environment_but_where_programs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_TOKEN", "secret")
    monkeypatch.setenv("PATH", "/opt/bin")
    seen = environment({"CSIT_LOAD": "5"})
    assert set(seen) <= {"PATH", "LANG", "LC_ALL", "TZ", "CSIT_LOAD"}
    assert seen["PATH"].split(":")[0] == "/opt/bin"
    assert "/usr/sbin" in seen["PATH"].split(":"), "services are there, and not on everybody's path"


def test_an_instance_that_uses_up_its_memory_while_it_is_looked_at_is_named_with_it() -> None:
    """The kernel kills its processes just before the look whether there are any."""
    killed: list[int] = []

    def processes() -> tuple[int, ...]:
        killed.append(1)
        return ()

    instance: Any = ServiceInstance.__new__(ServiceInstance)
    instance.name, instance._busy = "back-end-1", True
    instance._limits = GroupLimits(1.0, 48 << 20, None)
    instance.group = SimpleNamespace(processes=processes, killed_for_memory=lambda: len(killed))
    assert instance.problems() == (
        "back-end-1 used up its 48 MB: the kernel killed 1 of its processes",
        "all processes of back-end-1 have ended",
    )
