"""The choice of a container engine, and removal of its containers. No engine is started here."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from resources.libraries.python.drivers.containers import container_cleanup, container_facts, engine, engine_choice
from resources.libraries.python.drivers.containers.container_cleanup import Contained
from resources.libraries.python.drivers.containers.engine import ContainerSpec, Engine
from resources.libraries.python.drivers.containers.engine_choice import choose, missing
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.testbed.nodes import Container
from tests.builders import shell_program

WANTED = ContainerSpec(name="csit-nf-1-1", namespace=Path("/run/netns/csit-nf-1-1"), cpus=(5, 2, 5))


DOCKER = Engine(name="docker", image="vpp:25.06")


def words(of: Engine) -> list[str]:
    return engine.run(of, WANTED, shared=[Path("/run/vpp")], read_only=[Path("/opt")], limits={"nofile": (1024, 4096)})


def after(row: Sequence[str], option: str) -> list[str]:
    """Values of an option."""
    return [row[index + 1] for index, word in enumerate(row) if word == option]


def test_docker_enters_the_namespace_inside() -> None:
    found = words(DOCKER)
    assert after(found, "--network") == ["host"]
    assert "/run/netns/csit-nf-1-1:/run/netns/csit-nf-1-1" in after(found, "--volume")
    assert found[-5:] == ["vpp:25.06", "nsenter", "--net=/run/netns/csit-nf-1-1", "sleep", "infinity"]
    assert words(Engine(name="docker"))[-5] == engine.ROOT_IMAGE
    assert "--cgroup-parent" not in found, "a parent is of another form where Docker uses systemd"


def test_podman_takes_an_image_from_where_the_machine_keeps_its_images() -> None:
    found = words(Engine(name="podman", image="nf:1", runtime="runc"))
    assert "--root" not in found
    assert after(found, "--pull") == ["never"]
    assert found[-3:] == ["nf:1", "sleep", "infinity"]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Engines that are installed, with what they say when a container is to be started; empty where that works."""
    answers: dict[str, str] = {}

    def call(_: Engine, argv: Sequence[str], **__: object) -> str:
        if answers.get(argv[0]):
            raise CommandFailed(argv, 126, answers[argv[0]])
        return f"{Path(argv[0]).name} version 4.3.1+ds1\n" if "--version" in argv else "28.2.2 1.1.5"

    monkeypatch.setattr(
        engine_choice, "path_of", lambda name: name if name in {*answers, *answers.get("also", "").split()} else None
    )
    monkeypatch.setattr(engine_choice, "call", call)
    monkeypatch.setattr(engine_choice, "STORE", tmp_path / "store")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    engine_choice._try.cache_clear()
    yield answers
    engine_choice._try.cache_clear()


def test_auto_is_the_first_engine_that_starts_a_container_and_says_why(there: dict[str, str]) -> None:
    auto = Container(engine="auto")
    assert str(choose(auto)).startswith("none (auto: no engine starts a container: podman")
    engine_choice._try.cache_clear()
    there |= {"docker": ""}
    assert choose(auto).why == (
        "docker 28.2.2 with runc 1.1.5 (auto: the first that starts a container; podman is not installed)"
    )
    engine_choice._try.cache_clear()
    there |= {"podman": "", "also": "runc"}
    found = choose(auto)
    assert found.engine == Engine(name="podman", store=engine_choice.STORE, runtime="runc")
    assert "podman 4.3.1+ds1 with runc 4.3.1+ds1" in str(found)
    assert choose(Container()).engine is None


@pytest.mark.parametrize(
    ("installed", "engine_and_image", "sentence"),
    [
        ({}, "podman", "podman is not installed; apt-get install --no-install-recommends podman runc"),
        ({"podman": ""}, "podman", "podman has no OCI runtime (runc, crun); apt-get install runc"),
        ({"podman": "crun: no cgroup", "also": "crun"}, "podman", "crun: no cgroup; apt-get install runc: crun"),
        ({"podman": "setrlimit RLIMIT_NPROC", "also": "runc"}, "podman", "RLIMIT_NPROC; raise the limits of the shell"),
        ({"docker": "Cannot connect to the Docker daemon at x"}, "docker", "start docker, or set container.engine to"),
        ({"podman": "Error: nf:1: image not known", "also": "runc"}, "podman nf:1", "the image: podman pull nf:1"),
    ],
)
def test_an_engine_asked_for_by_name_that_does_not_work_is_a_problem_with_its_remedy(
    there: dict[str, str], installed: dict[str, str], engine_and_image: str, sentence: str
) -> None:
    there |= installed
    wanted = Container.model_validate(dict(zip(("engine", "image"), engine_and_image.split(), strict=False)))
    (problem,) = missing(wanted)
    assert sentence in str(problem)
    with pytest.raises(CsitError, match=f"^{re.escape(str(problem))}$"):
        choose(wanted)
    assert missing(wanted.model_copy(update={"engine": "auto"})) == ()


def test_containers_with_our_label_are_removed_although_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []
    stays = ""

    def call(_: Engine, argv: Sequence[str], **__: object) -> str:
        asked.append(argv)
        if "rm" in argv and argv[-1] == stays:
            raise CommandFailed(argv, 125, "device or resource busy")
        return next((f"{name}\n" for name in ("one", "two") if f"name=^csit-{name}$" in argv), "")

    monkeypatch.setattr(container_cleanup, "call", call)
    rows = [Contained(engine=DOCKER, name=f"csit-{name}") for name in ("one", "two", "gone")]
    assert container_cleanup.remove(rows) == [f"removed docker container csit-{name}" for name in ("one", "two")]
    assert [row for row in asked if "rm" in row] == [["docker", "rm", "--force", name] for name in ("one", "two")]
    assert all(f"label={engine.LABEL}" in row for row in asked if "ps" in row)
    asked.clear()
    stays = "one"
    with pytest.raises(CommandFailed, match="device or resource busy"):
        container_cleanup.remove(rows)
    assert ["docker", "rm", "--force", "two"] in asked


def test_further_file_systems_of_the_machine_are_mounted_read_only(tmp_path: Path) -> None:
    disk = tmp_path / "disk with a blank"
    disk.mkdir()
    escaped = str(disk).replace(" ", "\\040")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\n/dev/vdb {escaped} xfs rw 0 0\n"
        "tmpfs /run tmpfs rw 0 0\n/dev/vda /run/netns ext4 rw 0 0\n"
    )
    podman = Engine(name="podman", store=Path("/run/own"), runtime="runc")
    assert engine_choice.folders_of_the_machine(podman, mounts) == (disk,)
    assert engine_choice.folders_of_the_machine(DOCKER, mounts) == ()
    of_root = engine_choice.folders_of_the_machine(Engine(name="docker"), mounts)
    assert Path("/usr") in of_root
    assert not {Path("/proc"), Path("/sys"), Path("/dev"), Path("/run")} & {*of_root}


@pytest.mark.parametrize(
    ("script", "version", "problem"),
    [
        ('echo \'{"Client": {"Version": "5.4.2"}}\'', "5.4.2", None),
        ("echo broken storage >&2; exit 125", None, "prints no version (status 125): broken storage"),
        ("echo hello", None, "prints no version (status 0): nothing on stderr"),
        ("exec sleep 60", None, "does not answer within 0 s"),
    ],
)
def test_podman_prints_its_version(
    script: str, version: str | None, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell_program(tmp_path / "podman", script)
    monkeypatch.setattr(container_facts, "_PATH", f"{tmp_path}:/usr/bin:/bin")
    if "sleep" in script:
        monkeypatch.setattr(container_facts, "_WITHIN_S", 0.2)
    assert container_facts._podman() == {"there": True, "version": version, "problem": problem}
    assert container_facts.answer({"docker": str(tmp_path / "none")})["runc"]["problem"] is None
