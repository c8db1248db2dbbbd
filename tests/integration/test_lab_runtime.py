"""What an agent runs on is brought to a node, here to this machine as if it were one: once, whole, and tried before."""

import copy
import os
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import PROTOCOL, Hello
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.remote.link import AgentLink

pytestmark = [pytest.mark.parallel, pytest.mark.root]


@pytest.fixture
def node() -> Iterator[LocalConnection]:
    connection = LocalConnection("DUT1")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Runtimes:
    """Packed once for all tests."""
    return Runtimes(PurePosixPath(tmp_path_factory.mktemp("runtimes")))


def elsewhere(runtimes: Runtimes, folder: Path) -> Runtimes:
    """The same packed runtimes, for another folder of nodes."""
    other = copy.copy(runtimes)
    other._folder = PurePosixPath(folder)
    return other


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_agent_runs_from_what_was_brought_and_from_nothing_else(node: LocalConnection, runtimes: Runtimes) -> None:
    packed, program = runtimes.install(node, "python3")
    inode = Path(program).stat().st_ino
    assert runtimes.install(node, "python3") == (packed, program)
    assert Path(program).stat().st_ino == inode
    argv = ["env", "-i", "PATH=/usr/bin:/bin", "python3", "-I", str(program), "--silence-s", "20"]
    link = AgentLink("DUT1", node.open(argv, root=True), 20.0)
    try:
        greeting = link.call(calls.HELLO, Hello(PROTOCOL, packed.project))
        mapped = Path(f"/proc/{greeting.pid}/maps").read_text(encoding="utf-8")
        versions = link.call(calls.FINGERPRINT, None).versions
    finally:
        link.close()
    assert greeting.project == packed.project
    assert str(Path(program).parents[1] / packed.packages_name) in mapped
    assert "site-packages" not in mapped
    assert set(versions) == {"numpy", "pydantic", "pyroute2", "hdrhistogram"}


def test_a_node_that_has_the_packages_gets_the_sources_only(
    node: LocalConnection, runtimes: Runtimes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    own = elsewhere(runtimes, tmp_path)
    own.install_packages(node, "python3")
    (packages,) = names(tmp_path)
    inode = (tmp_path / packages).stat().st_ino
    packed, program = own.install(node, "python3")
    assert names(tmp_path) == {packed.name, packages} == {packed.name, packed.packages_name}
    assert (tmp_path / packages).stat().st_ino == inode
    assert "numpy" in names(Path(program).parent / "packages")
    sent = [record.getMessage() for record in caplog.records if "installing" in record.getMessage()]
    assert [text.split(" MB of ")[1] for text in sent] == ["sources and packages", "sources"]


def test_only_the_newest_stay(node: LocalConnection, runtimes: Runtimes) -> None:
    packed, program = runtimes.install(node, "python3")
    folder = Path(program).parents[1]
    for number in range(5):
        (folder / f"old{number}").mkdir()
        (folder / f"packages-{number}").mkdir()
        (folder / f"old{number}" / "packages").symlink_to(f"../packages-{number}")
        os.utime(folder / f"old{number}", (number, number))
    (folder / ".new-unfinished").mkdir()
    os.utime(folder / ".new-unfinished", (0, 0))
    os.rename(Path(program).parent, folder / "used")  # noqa: PTH104 - so that it is brought once more
    os.utime(folder / "used", (time.time() - 60,) * 2)
    runtimes.install(node, "python3")
    assert names(folder) == {Path(program).parent.name, "used", "old4", packed.packages_name, "packages-4"}


def test_too_little_space_is_one_sentence_and_leaves_nothing(
    node: LocalConnection, runtimes: Runtimes, tmp_path: Path
) -> None:
    node.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "tmpfs", str(tmp_path)], root=True)
    try:
        with pytest.raises(Unsupported) as found:
            elsewhere(runtimes, tmp_path).install(node, "python3")
        assert names(tmp_path) == set()
    finally:
        node.run(["umount", str(tmp_path)], root=True)
    assert str(found.value).startswith(f"DUT1: {tmp_path} needs ")
    assert "bytes for what an agent runs on, 20971520 are free there" in str(found.value)


def test_older_ones_make_room(node: LocalConnection, runtimes: Runtimes, tmp_path: Path) -> None:
    node.run(["mount", "-t", "tmpfs", "-o", "size=150m,mode=755", "tmpfs", str(tmp_path)], root=True)
    try:
        for age_s, name in ((200, "older"), (100, "newer")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "content").write_bytes(bytes(40_000_000 if name == "older" else 20_000_000))
            os.utime(tmp_path / name, (time.time() - age_s,) * 2)
        packed, _ = elsewhere(runtimes, tmp_path).install(node, "python3")
        assert names(tmp_path) == {packed.name, packed.packages_name, "newer"}
    finally:
        node.run(["umount", str(tmp_path)], root=True)


def test_a_folder_that_others_can_write_to_is_refused(node: LocalConnection, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(Unsupported, match=f"DUT1: {tmp_path} cannot be used: it belongs to user 0 with mode 777"):
        Runtimes(PurePosixPath(tmp_path)).install(node, "python3")
