"""Summary of a night: as the body of an e-mail (HTML) and as a chat message (Markdown)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from csit_utils.analysis.causes import condensed
from csit_utils.report.html import fill
from csit_utils.report.links import test_href
from csit_utils.report.report_context import ReportContents, runs_shown
from csit_utils.studies.density.headlines import testbed_views
from resources.libraries.python.redaction import outgoing
from resources.libraries.python.whole_files import write_whole

_MAX = 20
"""Largest number of lines of a part."""
_LONGEST = 200
"""Largest length of a line in characters."""
_ADDRESS = ":/?#@!$&'*+,;=%[]~"
"""Characters of an address besides letters and digits; without parentheses, which end a link in Markdown."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+|<>~!-])")
_CALLS = re.compile(r"[@<]|:(?=//)|(?<=www)\.|(?<=mailto):", re.IGNORECASE)
_JOINER = "\u2060"
"""Is not seen; chat programs then take no name for one to call, and no text for an address."""


@dataclass(frozen=True)
class MessageLine:
    """One line of a message."""

    text: str
    href: str | None = None
    """Where the report has it."""
    simulated: bool = False


@dataclass(frozen=True)
class MessagePart:
    """Lines under a heading."""

    heading: str
    lines: tuple[MessageLine, ...]


def message_parts(shown: ReportContents, address: Callable[[str], str | None]) -> tuple[MessagePart, ...]:
    """Return the parts of a message; those without a line are left out.

    `address`: gives the address of an anchor, or None.
    """
    own = [view for view in testbed_views(shown.systems, shown.trends_by_cell) if not view.published]
    changes = [
        MessageLine(f"{line.testbed}: {line.text}", address(line.href), line.simulated) for line in shown.changes
    ]
    if not changes and shown.has_earlier_runs:
        changes.append(MessageLine("No unexplained change beyond noise, and no test changed its status."))
    failed = [row for row in shown.latest if row.status not in {"PASS", "SKIP"}]
    parts = (
        ("Tests", [MessageLine(str(shown.tally), address("#failures")), *map(MessageLine, runs_shown(shown))]),
        (
            "Key figures",
            [
                MessageLine(
                    f"{': '.join(filter(None, (view.name, block.name)))}: {line.text}",
                    address(line.href),
                    view.simulated,
                )
                for view in own
                for block in view.blocks
                for line in block.carried
            ],
        ),
        ("What changed", changes),
        (
            "Failed",
            [
                MessageLine(f"{row.test_name}: {row.message}", address(test_href(row)), bool(row.simulated))
                for row in failed
            ],
        ),
        (
            "Studies",
            [
                MessageLine(
                    f"{view.title}: {view.outcome or view.headline}",
                    address(f"#{view.anchor}"),
                    view.record.simulated,
                )
                for view in shown.characterizations
            ],
        ),
        (
            "Files that could not be read in full",
            [*map(MessageLine, condensed(each.text for each in shown.contents.problems))],
        ),
    )
    mixed = shown.measured  # else the title says that all are simulated
    return tuple(MessagePart(heading, tuple(_bounded(lines, mixed=mixed))) for heading, lines in parts if lines)


def _bounded(lines: Sequence[MessageLine], *, mixed: bool) -> Iterator[MessageLine]:
    for line in lines[:_MAX]:
        text = outgoing(" ".join(line.text.split()))
        short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        yield MessageLine(short, line.href, line.simulated and mixed)
    if len(lines) > _MAX:
        yield MessageLine(f"{len(lines) - _MAX} more")


def write_messages(shown: ReportContents, title: str, folder: Path, places: Mapping[str, str], url: str) -> None:
    """Write `message.html` and `message.md`.

    `places`: file of each anchor of the site.
    `url`: address of the folder for links; empty: links are relative to it.
    """
    base = url and quote(url.rstrip("/"), safe=_ADDRESS) + "/"

    def address(href: str) -> str | None:
        anchor = href.removeprefix("#")
        return f"{base}{places[anchor]}#{anchor}" if anchor in places else None

    title, parts = outgoing(title), message_parts(shown, address)
    write_whole(folder / "message.html", fill("message.html.j2", {"title": title, "parts": parts, "index": base}))
    write_whole(folder / "message.md", markdown(title, parts, base))


def markdown(title: str, parts: Sequence[MessagePart], index: str) -> str:
    """Return a message in Markdown; texts are escaped."""
    lines = [f"**{_escaped(title)}**"]
    for part in parts:
        lines += ["", f"**{part.heading}**", ""]
        for line in part.lines:
            text = ("SIMULATED " if line.simulated else "") + _escaped(line.text)
            lines.append(f"- [{text}]({line.href})" if line.href else f"- {text}")
    if index:
        lines += ["", f"[Report]({index}index.html)"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _CALLS.sub(rf"\g<0>{_JOINER}", _MARKDOWN.sub(r"\\\1", text))
