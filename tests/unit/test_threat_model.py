"""The numbers of docs/threat-model.md are those of the code."""

import re
from pathlib import Path

from resources.libraries.python.model import bounds

TEXT = (Path(__file__).parents[2] / "docs" / "threat-model.md").read_text(encoding="utf-8")
UNITS = {"": 1, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30, "days": 24 * 3600}


def test_bounds_of_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| [^|]+ \| ([\d,]+) ?(\w*) \| `(\w+)` \|$", TEXT, re.MULTILINE)
    table = TEXT.partition("## Bounds")[2]
    assert len(rows) == len(re.findall(r"^\| .*\| `", table, re.MULTILINE)) > 20
    assert {name: int(number.replace(",", "")) * UNITS[unit] for number, unit, name in rows} == {
        name: getattr(bounds, name) for _, _, name in rows
    }
