"""Hooks of mkdocs.yml: generated pages, files outside of docs, patterns in the navigation, a check of hosts."""

import logging
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from docs import keywords, reference
from resources.libraries.python.paths import PROJECT

_LOG = logging.getLogger("mkdocs.hooks.site")  # whose warnings end a strict build
_DOCS = PROJECT / "docs"
_OUTSIDE = "project/"
"""Folder of the site with the files outside of docs that a page links to."""
_PAGES_OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
_SHOWN = (".md", ".png", ".svg", ".html")
"""Files that browsers show; others are named as texts, or they would offer to save them."""
_LINK = re.compile(r"(?<=\]\()[^)\s#:]+(?=[)#])")
_OTHER_HOST = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
_HOME = """
- **[A sample report](sample-report.html)**: of the simulated testbed, as `./csit report` writes it.
- **Reference**: [commands](reference/commands.md), [variables](reference/variables.md),
  [topologies](reference/topology.md), [specifications](reference/specifications.md),
  [records](reference/records.md), [CSV files](reference/csv.md), [metrics](reference/metrics.md),
  [exit statuses](reference/exit-statuses.md), [keywords](reference/keywords.md).
"""
"""On the home page of the site, but not in the file: links to what a build makes."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that GitHub gives them."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add generated pages and files outside of docs, and fill in the navigation."""
    left = [_path(each.src_uri) for each in files.documentation_pages()]
    left += [PROJECT / name for name in _PAGES_OUTSIDE]
    for name, text in _generated().items():
        files.append(File.generated(config, name, content=text))
    done: set[Path] = set()
    while left:
        path = left.pop()
        if path in done or not path.is_file():
            continue
        done.add(path)
        if not files.get_file_from_path(_uri(path)):
            file = File.generated(config, _uri(path), abs_src_path=str(path))
            if path.suffix not in _SHOWN:
                file.dest_uri += ".txt"
            files.append(file)
        if path.suffix == ".md":
            targets = (_target(path, link) for link in _LINK.findall(path.read_text(encoding="utf-8")))
            left += [each for each in targets if each.is_relative_to(PROJECT)]
    uris = sorted(each.src_uri for each in files.documentation_pages())
    named = set(_named(config.nav or []))
    config.nav = list(_expanded(config.nav or [], [uri for uri in uris if uri not in named]))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links lead to where the site has the files, and those to a folder to its first page."""
    uri = page.file.src_uri
    if uri in _generated():
        return markdown

    def moved(found: re.Match[str]) -> str:
        target = _target(_path(uri), found[0])
        if not target.exists():
            return found[0]
        inside = f"{_uri(target)}/"
        first = next((each for each in _named(config.nav or []) if target.is_dir() and each.startswith(inside)), None)
        return posixpath.relpath(first or _uri(target), posixpath.dirname(uri))

    return _LINK.sub(moved, markdown) + (_HOME if uri == "index.md" else "")


def on_post_build(*, config: MkDocsConfig) -> None:
    """Refuse pages that load anything from another host."""
    for path in Path(config.site_dir).rglob("*.html"):
        if found := _OTHER_HOST.findall(path.read_text(encoding="utf-8")):
            _LOG.warning("%s loads from other hosts: %s", path, ", ".join(sorted({*found})))


def _path(uri: str) -> Path:
    """File of the project with the source of an address of the site."""
    return PROJECT / uri.removeprefix(_OUTSIDE) if uri.startswith(_OUTSIDE) else _DOCS / uri


def _uri(path: Path) -> str:
    inside = path.is_relative_to(_DOCS)
    return path.relative_to(_DOCS).as_posix() if inside else _OUTSIDE + path.relative_to(PROJECT).as_posix()


def _target(page: Path, link: str) -> Path:
    return (page.parent / link).resolve()


def _named(entries: Iterable[Any]) -> Iterator[str]:
    """Pages of the navigation, without its patterns."""
    for entry in entries:
        for part in entry.values() if isinstance(entry, dict) else [entry]:
            yield from _named(part) if isinstance(part, list) else [part]


def _expanded(entries: Iterable[Any], left: list[str]) -> Iterator[Any]:
    """Entries of the navigation with pages in the place of patterns; those are taken from the pages that are left."""
    for entry in entries:
        if isinstance(entry, dict):
            yield {name: [*_expanded(part, left)] if isinstance(part, list) else part for name, part in entry.items()}
        elif "*" in entry:
            # As a shell does, whose `*` ends at a slash.
            found = [uri for uri in left if fnmatch(uri, entry) and uri.count("/") == entry.count("/")]
            left[:] = [uri for uri in left if uri not in found]
            yield from found
        else:
            yield entry


@cache
def _generated() -> dict[str, str]:
    """Pages of the reference, by their addresses, and a report."""
    found = {f"reference/{name}": text for name, text in reference.pages().items()}
    lines = ["# Keywords", "", "Keywords of Robot Framework by library:", ""]
    for library in keywords.libraries():
        for complaint in keywords.complaints(library):
            _LOG.warning("%s", complaint)
        found[f"reference/keywords/{library.name}.html"] = keywords.page_of(library)
        lines.append(f"- [{library.name}](keywords/{library.name}.html): {library.doc.partition(chr(10))[0]}")
    return found | {"reference/keywords.md": "\n".join([*lines, ""]), "sample-report.html": _sample_report()}


def _sample_report() -> str:
    """A report of some cells on the simulated testbed, in one file."""
    with tempfile.TemporaryDirectory() as made:
        page = f"{made}/report.html"
        chosen = ("TOPOLOGY:topologies/sim.yaml", "CELLS:{1,2,4,8}x{1,2,4}", "NF_SIZES:1c", "SEARCH:quick")
        run = ["robot", *(word for each in chosen for word in ("-v", each)), "-d", made, "--suite", "*ndrpdr"]
        for words in ([*run, "tests/density"], ["report", made, "-o", page]):
            argv = [sys.executable, "-m", "csit_utils", *words]
            done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
            if done.returncode:
                _LOG.warning("sample report: %s: exit status %d: %s", words[0], done.returncode, done.stderr[-500:])
                return ""
        return Path(page).read_text(encoding="utf-8")
