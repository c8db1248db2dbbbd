"""The table of faults: what can break at which moment, and the tests that prove what happens then.

`python -m tests.faults` prints it as Markdown.
"""

from pathlib import Path
from typing import NamedTuple

import yaml


class Section(NamedTuple):
    """One table. A cell has codes of tests or of explanations, separated by commas."""

    columns: list[str]
    rows: dict[str, list[str]]


class Proof(NamedTuple):
    """A test, as file and name below `tests`, and what breaks in it, where."""

    test: str
    how: str


class Faults(NamedTuple):
    """All of `faults.yaml`: codes of tests are capital letters with a number, of explanations small letters."""

    tables: dict[str, Section]
    tests: dict[str, Proof]
    explanations: dict[str, str]


def load() -> Faults:
    """Read the table from the file beside this one."""
    data = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return Faults(
        {title: Section(**section) for title, section in data["tables"].items()},
        {code: Proof(**proof) for code, proof in data["tests"].items()},
        data["explanations"],
    )


def markdown() -> str:
    """Return the tables, and below them the tests and explanations by code."""
    faults, lines = load(), []
    for title, (columns, rows) in faults.tables.items():
        table = (columns, ["---"] * len(columns), *([fault, *cells] for fault, cells in rows.items()))
        lines += [f"## {title}", "", *(f"| {' | '.join(row)} |" for row in table), ""]
    lines += ["## Tests", "", *(f"- **{code}** `{test}`: {how}" for code, (test, how) in faults.tests.items()), ""]
    lines += ["## Explanations", "", *(f"- **{code}** {text}" for code, text in faults.explanations.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
