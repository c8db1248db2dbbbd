"""Command lines for container engines. No engine is started here; that they are accepted is not shown by this."""

import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.drivers.function.vpp import container
from resources.libraries.python.drivers.function.vpp.container import Container, choose, run_in
from resources.libraries.python.errors import Unsupported

ARGV = ("/usr/bin/vpp", "-c", "/run/vpp/nf-1-1/startup.conf")
SHARED = [Path("/run/vpp")]


def test_podman_joins_the_namespace_of_the_nf() -> None:
    found = run_in(Container("podman", "vpp:24.10"), "nf-1-1", (2, 5, 5), SHARED, ARGV)
    assert found[:2] == ("podman", "run")
    assert "--network=ns:/run/netns/csit-nf-1-1" in found
    assert "--cpuset-cpus=2,5" in found
    assert found[found.index("--volume") + 1] == "/run/vpp:/run/vpp"
    assert found[-4:] == ("vpp:24.10", *ARGV)


def test_podman_without_an_image_takes_the_file_system_of_the_machine() -> None:
    found = run_in(Container("podman", None), "nf-1-1", (2,), SHARED, ARGV)
    assert found[-5:] == ("--rootfs", "/:O", *ARGV)


def test_docker_enters_the_namespace_inside() -> None:
    found = run_in(Container("docker", "vpp:24.10"), "nf-1-1", (2,), SHARED, ARGV)
    assert "--network=host" in found
    assert found[-6:] == ("vpp:24.10", "nsenter", "--net=/run/netns/csit-nf-1-1", *ARGV)


@pytest.mark.parametrize(
    ("asked", "image", "there", "chosen"),
    [
        ("process", None, {"docker", "podman"}, None),
        ("auto", None, set(), None),
        ("auto", None, {"docker", "podman"}, Container("podman", None)),
        ("auto", "x", {"docker", "podman"}, Container("docker", "x")),
        ("podman", "x", {"docker", "podman"}, Container("podman", "x")),
    ],
)
def test_the_engine_that_answers(
    monkeypatch: pytest.MonkeyPatch, asked: str, image: str | None, there: set[str], chosen: Container | None
) -> None:
    monkeypatch.setattr(container, "answers", lambda engine: engine in there)
    assert choose(asked, image) == chosen


def test_one_that_is_asked_for_by_name_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "answers", lambda _: False)
    with pytest.raises(Unsupported, match="podman does not answer"):
        choose("podman", None)
    monkeypatch.setattr(container, "answers", lambda _: True)
    with pytest.raises(Unsupported, match="Docker needs an image"):
        choose("docker", None)


def test_an_engine_without_its_daemon_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container.shutil, "which", lambda name: f"/usr/bin/{name}")
    failed = subprocess.CompletedProcess(["docker", "info"], 1, b"", b"Cannot connect to the Docker daemon")
    monkeypatch.setattr(container.subprocess, "run", lambda *_, **__: failed)
    assert not container.answers("docker")
