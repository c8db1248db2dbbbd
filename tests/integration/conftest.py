"""Fixtures that several files of tests share."""

import os
import re
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from resources.libraries.python.drivers.host.cpu.cpu import kept_awake
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from tests import retries
from tests.integration import emulated as emulated_testbed
from tests.integration import traffic
from tests.integration.browser import Browser
from tests.integration.lab import Lab
from tests.integration.user_space import machine_stays_as_it_was

_YIELDS = 19
"""Nice value of what is beside traffic, as in tox.ini."""


def pytest_configure(config: pytest.Config) -> None:
    # Half a second in every run adds up: tests of the noise floor and of qualifications ask for them.
    os.environ.setdefault("ROBOT_OPTIONS", "--variable NOISE_FLOOR:0 --variable QUALIFY:off")
    config.pluginmanager.register(retries)
    config.pluginmanager.register(retries.Retries())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without a test that `-m` chooses, as its text shows: all of them take 5 s of CPU time."""
    chosen = config.option.markexpr
    if not chosen or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    if re.search(r"^pytestmark = [A-Z]", text, re.MULTILINE):  # marks from elsewhere
        return None
    of_all = _marks(" ".join(re.findall(r"^pytestmark = .*(?:\n[ \]].*)*", text, re.MULTILINE)))
    asked = sorted(set(re.findall(r"\w+", chosen)) - {"not", "and", "or"})
    may_have = [(True,) if name in of_all else (False, True) if name in _marks(text) else (False,) for name in asked]
    expression = Expression.compile(chosen)
    sets = ({name for name, has in zip(asked, row, strict=True) if has} for row in product(*may_have))
    return None if any(expression.evaluate(partial(_is_in, marks)) for marks in sets) else True


def _is_in(marks: set[str], name: str, /, **_: object) -> bool:
    return name in marks


def _marks(text: str) -> set[str]:
    return set(re.findall(r"mark\.(\w+)", text))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Of several processes, the one with traffic goes first: the others have the time in which it waits."""
    if "PYTEST_XDIST_WORKER" in os.environ and os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0 if traffic.takes_turns(item.path) else _YIELDS)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.geteuid() != 0 and item.get_closest_marker("root"):
        pytest.skip("needs root and network namespaces")


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def browser(_chromium: Browser) -> Iterator[Browser]:
    """The one browser of the session, with a wide light window; it has nothing to complain about in the end."""
    _chromium.events.clear()
    _chromium.look(1280, 900)
    yield _chromium
    assert _chromium.complaints() == []


@pytest.fixture(scope="module")
def awake() -> Iterator[None]:
    """For drivers that are tried without the machine's lock, whose holder sees to it otherwise."""
    with kept_awake():
        yield


@pytest.fixture(scope="session")
def emulated() -> Iterator[emulated_testbed.Emulated]:
    """One testbed of emulated machines, TG and DUT1, for all tests that run on it."""
    if why := emulated_testbed.missing():
        pytest.skip(why)
    with emulated_testbed.started() as lab:
        yield lab


class ByFile(LoadFileScheduling):
    """A file at a time on a worker, as its tests share what they run on, and all that take turns on the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "traffic" if traffic.takes_turns(self.config.rootpath / file) else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        if "traffic" in self.workqueue:  # first, as it takes longest: no worker waits for it at the end
            self.workqueue.move_to_end("traffic", last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


@pytest.fixture
def machine() -> Iterator[MachineLock]:
    with traffic.machine() as lock:
        yield lock


@pytest.fixture(autouse=True)
def _program_has_ended(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test that is marked `leaves_no` leaves a process of the program that this names, a namespace or a folder."""
    mark = request.node.get_closest_marker("leaves_no")
    with machine_stays_as_it_was(*mark.args) if mark else nullcontext():
        yield


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The nodes of a file of tests, as it describes them in `LAB`."""
    with Lab(**request.module.LAB) as made:
        yield made
