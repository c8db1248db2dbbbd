"""The pictures of README.md can be taken by their command, from measured results only."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.paths import PROJECT
from tests.integration.browser import IN_CHROMIUM
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.robot_output import write_output_xml

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]

_MAX_BYTES = 150_000


def pictures(folder: Path, *, simulated: bool) -> subprocess.CompletedProcess[str]:
    """Run the command on results of three cells."""
    cells = [
        result(ServiceType.CSC, rows, columns, simulated=simulated, histograms=False)
        for rows, columns in ((1, 1), (1, 2), (2, 1))
    ]
    write_output_xml(folder / "output.xml", cells)
    command = [sys.executable, PROJECT / "docs" / "pictures.py", folder, "--into", folder / "pictures"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pictures_show_the_heat_map_and_the_page_of_a_test(tmp_path: Path) -> None:
    done = pictures(tmp_path, simulated=False)
    assert (done.returncode, done.stderr) == (0, "")
    taken = {path.name: path.read_bytes() for path in (tmp_path / "pictures").iterdir()}
    assert sorted(taken) == ["heat-map.png", "test-page.png"]
    for name, picture in taken.items():
        width, height = struct.unpack(">II", picture[16:24])  # https://www.w3.org/TR/png/#11IHDR
        assert (width, height > 200) == (1060, True), name
        assert 10_000 < len(picture) < _MAX_BYTES, name  # not an empty page, and small enough for README.md


def test_simulated_results_are_refused(tmp_path: Path) -> None:
    done = pictures(tmp_path, simulated=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "simulated results; the pictures show measured ones" in done.stderr
