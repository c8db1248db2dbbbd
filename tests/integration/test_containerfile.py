"""The image of Containerfile: an ordinary user plans, measures on the simulated testbed and reports in it."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.paths import PROJECT

pytestmark = pytest.mark.parallel
BASES = ("docker.io/library/debian:bookworm-slim", "localhost/debian:bookworm")
"""Of which one has to be on this machine: the test downloads none."""
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
"""Those that containers have by default are above what an unprivileged host may give."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
"""Of this machine, which may reach packages by a proxy of its own."""
CELL = ("-v", "TOPOLOGY:topologies/sim.yaml", "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick")


def podman(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["podman", "--runtime", "runc", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """The image, built anew unless nothing has changed."""
    if lacking := [name for name in ("podman", "runc") if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    base = next((name for name in BASES if podman("image", "exists", name).returncode == 0), None)
    if base is None:
        pytest.skip(
            f"no base image on this machine: podman pull {BASES[0]}, or podman import a Debian 12 as {BASES[1]}"
        )
    name = "localhost/csit-density-tested"
    trust = ("-v", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--env", f"PIP_CERT={CERTIFICATES}")
    built = podman("build", "--network", "host", *LIMITS, *trust, "--build-arg", f"BASE={base}", "-t", name, PROJECT)
    assert built.returncode == 0, built.stderr[-3000:]
    yield name
    podman("rmi", name)


def test_a_user_plans_measures_and_reports_without_a_network(image: str, tmp_path: Path) -> None:
    def csit(*words: str) -> str:
        mounted = ("-v", f"{tmp_path}:/csit/results:U")
        done = podman("run", "--rm", "--network", "none", *LIMITS, *mounted, image, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "CSC" in csit("plan", "topologies/sim.yaml", "--cells", "1x1")
    csit("robot", *CELL, "-d", "results/sim", "tests/density/csc-ndrpdr.robot")
    csit("report", "results/sim", "-o", "results/site")
    assert (tmp_path / "sim" / "output.xml").stat().st_uid != 0
    assert (tmp_path / "site" / "density.html").exists()


def test_the_image_has_nothing_of_the_checkout_but_the_project(image: str) -> None:
    listed = podman("run", "--rm", *LIMITS, "--entrypoint", "ls", image, "-A", "/csit").stdout.split()
    assert "csit_utils" in listed
    assert {".git", ".venv", "results"} & {*listed} == set()
