"""Templates with filters for numbers, shared marks, scripts and styles."""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, nodes
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator, Frame
from markupsafe import Markup, escape

from csit_utils.report import units
from csit_utils.report.details.testview import bounds_text
from csit_utils.report.links import cell_anchor, cell_href, test_href
from csit_utils.studies import template_folders
from resources.libraries.python.redaction import INVISIBLE, outgoing, redacted, visible_json

TEMPLATES = (Path(__file__).with_name("templates"), *template_folders())


_special = re.compile(rf"[&<>'\"\r{INVISIBLE}]").search
"""Finds a character that HTML or a page may not show as it is. A single class takes half the time of two."""


def _visible(value: object) -> object:
    """A value of a page: topologies, results and nodes can have put any character into a text."""
    return outgoing(value) if type(value) is str else value


def _written(value: object) -> str:
    """Return a value of a page as HTML: `escape(_visible(value))` with less effort for what most values are."""
    if type(value) is str:
        if _special(value) is None and redacted(value) is value:
            return value
    elif type(value) is Markup:
        return value
    elif type(value) is int or type(value) is float:
        return str(value)
    return escape(_visible(value))


class _FewSteps(CodeGenerator):
    """Templates with one call per value, `written`, instead of `escape` and `finalize`: pages have thousands.

    A template collects its text in a list, as macros do, instead of yielding each piece through all that include it.
    """

    def write_commons(self) -> None:
        """Write what the code of a template begins with."""
        super().write_commons()
        self.writeline("written = environment.written")

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Write the code of nodes."""
        whole = frame.rootlevel and frame.buffer is None
        if whole:
            self.buffer(frame)
        super().blockvisit(nodes, frame)
        if whole:
            self.writeline(f"yield concat({frame.buffer})")

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
            super()._output_child_pre(node, frame, finalize)
        else:
            self.write("written(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
            super()._output_child_post(node, frame, finalize)
        else:
            self.write(")")


class _HtmlEnvironment(Environment):
    code_generator_class = _FewSteps
    written = staticmethod(_written)


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept as Python keeps compiled modules; they are made again where they cannot be."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), "%s.template")
        self._compiler = f"{version('jinja2')} {Path(__file__).read_text(encoding='utf-8')}"

    def get_source_checksum(self, source: str) -> str:
        """Return a digest of a template and of what compiles it."""
        return super().get_source_checksum(f"{self._compiler}{source}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)
                # Jinja makes it readable for one user only, and all others would compile again.
                Path(self._get_cache_filename(bucket)).chmod(0o644)


def html_templates() -> Environment:
    """Return the environment of HTML templates: values are escaped, missing ones are errors."""
    made = _HtmlEnvironment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=CompiledTemplates(Path(__file__).with_name("__pycache__")),
    )
    made.policies["json.dumps_function"] = visible_dumps
    return made


def _counted(number: float | None, *, lost: bool = False) -> Markup:
    """Return a table cell with a number of packets or connections: grouped where it is read, plain in CSV.

    A function, since pages of tests have hundreds and a macro takes four times as long.

    `lost`: whether it is a loss, which is marked.
    """
    marked = " lost" if lost and number else ""
    plain = "" if number is None else number
    return Markup(f'<td class="num{marked}" data-v="{plain}">{units.count(number)}</td>')  # noqa: S704 - of numbers


def _with_code(text: str) -> Markup:
    """Return a sentence as HTML; what it has in backticks is code."""
    # Plain text, because `re.sub` joins with a method of its argument, and that of Markup escapes once more.
    written = str(_written(text))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", written))  # noqa: S704 - escaped before


def visible_dumps(data: object, **options: Any) -> str:  # noqa: ANN401 - those of json.dumps
    """Return JSON for scripts, which put its texts on the page."""
    return visible_json(json.dumps(data, **options))


def own_file(name: str) -> Markup:
    """Return a style sheet or script of this project without escaping."""
    path = next(found for folder in TEMPLATES if (found := folder / name).is_file())
    return Markup(path.read_text(encoding="utf-8"))  # noqa: S704 - our own file


def study_files(folder: str, suffix: str) -> tuple[str, ...]:
    """Return the names of scripts or styles in the folders of studies, without suffix."""
    return tuple(path.stem for each in TEMPLATES[1:] for path in sorted((each / folder).glob(f"*{suffix}")))


SCRIPTS = (
    "base",
    "menus",
    "deferred_content",
    "plots",
    "tables",
    "heat",
    "heat_map_comparison",
    "tips",
    "trend",
    "student",
    "comparison",
    "compare",
    "choices",
    "environments",
    "help",
    *study_files("script", ".js"),
    "addresses",
)
"""Files `templates/script/{name}.js`, in order; `addresses` is last, because it shows what the others create."""
STYLES = (
    "base",
    "marks",
    "heat",
    "plots",
    "tables",
    "tests",
    "trend",
    "compare",
    "details",
    "flames",
    "characterized",
    *study_files("style", ".css"),
    "narrow",
    "print",
)
"""Files `templates/style/{name}.css`, in order; rules for narrow windows and for print come last."""


@cache
def _environment() -> Environment:
    environment = html_templates()
    environment.filters.update(
        digits3=units.digits3,
        count=units.count,
        counted=_counted,
        with_code=_with_code,
        rate=units.rate,
        bandwidth=units.bandwidth,
        latency=units.latency,
        joules=units.joules,
        seconds=units.seconds,
        percent=units.percent,
    )
    environment.globals.update(
        bounds_text=bounds_text, cell_anchor=cell_anchor, cell_href=cell_href, test_href=test_href
    )
    # Marks, tips and plots, which all pages share.
    shared = environment.get_template("parts.html.j2").module
    environment.globals.update({name: getattr(shared, name) for name in dir(shared) if not name.startswith("_")})
    return environment


def compile_templates() -> None:
    """Compile the templates that pages share, those of tests among them, before one needs them.

    Those of whole pages are left to the processes that render them: a report has few of all pages.
    """
    environment = _environment()
    for name in environment.list_templates(filter_func=lambda name: name.endswith(".j2") and "/" not in name):
        environment.get_template(name)


def fill(template: str, values: Mapping[str, object]) -> Markup:
    """Return a rendered template; text is escaped.

    `template`: path below `templates/`.
    `values`: values by name; a missing name is an error.
    """
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - escaped by the template


@cache
def script() -> Markup:
    """Return the script of pages."""
    return Markup("\n").join(own_file(f"script/{name}.js") for name in SCRIPTS)


@cache
def style() -> Markup:
    """Return the style sheet of pages."""
    return Markup("\n").join(own_file(f"style/{name}.css") for name in STYLES)
