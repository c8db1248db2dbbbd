"""Writes the HTML of every keyword library into docs/libdoc, and refuses keywords without documentation or types.

Run by `./csit test -e docs`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from robot.libdocpkg import LibraryDocumentation
from robot.libdocpkg.model import LibraryDoc

ROOT = Path(__file__).parents[1]
LIBRARIES = ROOT / "resources" / "libraries"
OUTPUT = ROOT / "docs" / "libdoc"


def libraries() -> Iterator[str]:
    """Every Robot library as Robot imports it (class and module of one name) and every resource file."""
    for file in sorted((LIBRARIES / "python" / "studies").glob("*/*Library.py")):
        yield ".".join(file.relative_to(ROOT).with_suffix("").parts)
    yield from (str(file) for file in sorted((LIBRARIES / "robot").glob("*.resource")))


def complaints(documentation: LibraryDoc) -> Iterator[str]:
    """What is missing."""
    if not documentation.doc:
        yield f"{documentation.name}: no documentation"
    for keyword in documentation.keywords:
        where = f"{documentation.source}:{keyword.lineno}: {keyword.name}"
        if not keyword.doc:
            yield f"{where}: no documentation"
        yield from (
            f"{where}: argument '{each.name}' has no type" for each in keyword.args if each.name and not each.type
        )


def main() -> int:
    """Write all pages; 1 when anything is missing."""
    OUTPUT.mkdir(exist_ok=True)
    missing: list[str] = []
    for name in libraries():
        of_study = name.endswith(".StudyLibrary")  # all studies have the same keywords
        documentation = LibraryDocumentation(f"{name}::outage" if of_study else name)
        missing += complaints(documentation)
        documentation.save(str(OUTPUT / f"{documentation.name}.html"), "HTML")
        print(f"{documentation.name}: {len(documentation.keywords)} keywords")
    print("\n".join(missing), file=sys.stderr, end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
