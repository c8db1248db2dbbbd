"""Keyword libraries: their HTML on the site, and keywords without documentation or types."""

import io
from collections.abc import Iterator

from robot.libdocpkg import LibraryDocumentation
from robot.libdocpkg.htmlwriter import LibdocHtmlWriter
from robot.libdocpkg.model import LibraryDoc

from resources.libraries.python.paths import PROJECT

_LIBRARIES = PROJECT / "resources" / "libraries"


def library_names() -> list[str]:
    """Every Robot library, as Robot imports it: class and module of one name."""
    files = sorted((_LIBRARIES / "python" / "studies").glob("*/*Library.py"))
    return [".".join(file.relative_to(PROJECT).with_suffix("").parts) for file in files]


def libraries() -> Iterator[LibraryDoc]:
    """Every Robot library and every resource file."""
    for name in library_names():
        of_study = name.endswith(".StudyLibrary")  # all studies have the same keywords
        yield LibraryDocumentation(f"{name}::outage" if of_study else name)
    yield from (LibraryDocumentation(str(file)) for file in sorted((_LIBRARIES / "robot").glob("*.resource")))


def complaints(library: LibraryDoc) -> Iterator[str]:
    """What is missing."""
    if not library.doc:
        yield f"{library.name}: no documentation"
    for keyword in library.keywords:
        where = f"{library.source}:{keyword.lineno}: {keyword.name}"
        if not keyword.doc:
            yield f"{where}: no documentation"
        yield from (
            f"{where}: argument '{each.name}' has no type" for each in keyword.args if each.name and not each.type
        )


def page_of(library: LibraryDoc) -> str:
    """Return the HTML of a library."""
    page = io.StringIO()
    LibdocHtmlWriter().write(library, page)
    return page.getvalue()
