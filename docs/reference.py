"""Reference pages of the site, generated from what declares their subjects."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from html import escape
from importlib import import_module
from inspect import cleandoc, getdoc, getsource
from itertools import pairwise
from types import NoneType
from typing import Any, cast, get_args, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from typer.core import TyperGroup
from typer.testing import CliRunner

from csit_utils import cli
from csit_utils.bisection.spec import BisectionSpec
from csit_utils.dataset.flatten import FILES, columns_of
from csit_utils.dataset.measures import Explanation
from csit_utils.dataset.store.sql import views
from csit_utils.studies.registry import explanations_by_heading
from resources.libraries.python.driver_registry import settings_of
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.recording.records import RECORDS
from resources.libraries.python.studies.chains.model.spec import ChainFile
from resources.libraries.python.studies.interference.model import InterferenceSpec
from resources.libraries.python.studies.outage.model import OutageSpec
from resources.libraries.python.studies.stateful.model import StatefulSpec

_WIDTH = 100
"""Of --help, in characters: it fits a page."""
_SPECIFICATIONS = (ChainFile, InterferenceSpec, OutageSpec, StatefulSpec, BisectionSpec)
_UNITS = {
    "ns": "ns", "us": "µs", "ms": "ms", "s": "s", "hz": "Hz", "pps": "packets/s", "bps": "bit/s", "gbps": "Gbit/s",
    "mb": "MiB", "mib": "MiB", "bytes": "bytes", "percent": "%", "ratio": "ratio", "share": "ratio", "w": "W", "j": "J",
    "cores": "cores",
}  # fmt: skip
"""Of numbers, by the last word of the key."""


def pages() -> dict[str, str]:
    """Markdown of every page, by the name of its file."""
    return {
        "commands.md": _commands(),
        "variables.md": _variables(),
        "topology.md": _page(
            "Keys of topologies",
            "Keys of `topologies/*.yaml`. How to write one: [add a topology](../how-to/add-a-topology.md).",
            _models([Topology, settings_of("TG"), settings_of("DUT"), Simulation]),
        ),
        "specifications.md": _page(
            "Keys of specifications",
            "Keys of the files that describe studies (`tests/characterization/specs`) and bisections; "
            "`-v SET:KEY=VALUE` sets one for a run.",
            _models(_SPECIFICATIONS),
        ),
        "records.md": _page(
            "Records",
            "Keys of result files, `results/*.json` in the output folder; `./csit schema` prints the JSON Schema.",
            _models(RECORDS.values()),
        ),
        "csv.md": _page(
            "CSV files and views",
            "`./csit report FILE --csv FOLDER` writes these files, in which an empty field is unknown; "
            "`./csit query DATASET` has these views.",
            _csv(),
        ),
        "exit-statuses.md": _exit_statuses(),
        "metrics.md": _metrics(),
    }


def _page(title: str, text: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", text, *parts]) + "\n"


def _table(heads: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    def row(cells: Iterable[object]) -> str:
        return f"| {' | '.join(' '.join(str(cell).replace('|', chr(92) + '|').split()) for cell in cells)} |"

    names = list(heads)
    return "\n".join([row(names), row(["---"] * len(names)), *map(row, lines)])


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


@cache
def _help(command: str) -> str:
    """What --help prints; of a command whose options another program parses, its description."""
    app = cli.make_app([command])
    declared = cast("TyperGroup", typer.main.get_command(app)).commands[command]
    if declared.context_settings.get("help_option_names") == []:
        return cleandoc(declared.help or "").replace("\b\n", "")
    environment = {"COLUMNS": str(_WIDTH), "TERM": "dumb"}
    return CliRunner().invoke(app, [command, "--help"], prog_name="./csit", env=environment).stdout


def _commands() -> str:
    parts = (f"## {name}\n\n```text\n{_help(name).strip()}\n```" for name in cli.COMMANDS)
    return _page("Commands", "What `./csit COMMAND --help` prints.", parts)


def _exit_statuses() -> str:
    found = {name: re.search(r"Exit\s+status:?\s+(.*?\.)(?=\s)", _help(name), re.DOTALL) for name in cli.COMMANDS}
    lines = [(_code(name), each[1]) for name, each in found.items() if each]
    common = cleandoc((getdoc(cli.main) or "").partition("Returns:\n")[2])
    return _page("Exit statuses", f"Of all commands: {common}", [_table(("command", "exit status"), lines)])


def _variables() -> str:
    heads = ("variable", "meaning", "default", "example", "studies")
    lines = (
        (_code(each.name), each.meaning, _code(each.default), _code(each.example), ", ".join(each.studies) or "all")
        for each in VARIABLES.values()
    )
    text = "Variables of the suites: `./csit robot -v NAME:VALUE`, and options of `./csit plan` and `./csit night`."
    return _page("Variables", text, [_table(heads, lines)])


def _metrics() -> str:
    parts = (
        part for heading, own in explanations_by_heading().items() for part in (f"## {heading}", *map(_explained, own))
    )
    verdicts = _table(("verdict", "meaning"), ((_code(kind.value), kind.meaning) for kind in VerdictKind))
    return _page("Metrics and verdicts", "What `./csit explain NAME` prints.", [*parts, f"## Verdicts\n\n{verdicts}"])


def _explained(text: Explanation) -> str:
    return (
        f"### {text.title}\n\n{_code(text.name)}: {text.what}\n\n"
        f"- **Unit**: {text.unit}\n- **How**: {text.how}\n- **Pitfalls**: {text.misread}"
    )


def _csv() -> Iterator[str]:
    for file, kind in FILES.items():
        types, texts, declared = get_type_hints(kind), _docstrings(kind), {each.name: each for each in fields(kind)}
        lines = (
            (_code(name), _name_of_type(types[name]), _unit(name), _default(declared[name]), texts.get(name, ""))
            for name in columns_of(kind)
        )
        yield f"## {file}.csv\n\n{kind.__doc__}\n\n{_table(('column', 'type', 'unit', 'default', 'meaning'), lines)}"
    for view in views():
        viewed = ((_code(name), kind_of_column) for name, kind_of_column in view.types())
        yield f"## View {view.name}\n\n{_table(('column', 'type'), viewed)}"


def _name_of_type(hint: Any) -> str:  # noqa: ANN401 - an annotation
    kinds = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return " or ".join(kinds[each] for each in get_args(hint) or (hint,) if each is not NoneType)


def _default(field: "Field[Any]") -> str:
    return "" if field.default in {MISSING, None, ""} else _code(field.default)


def _unit(key: str) -> str:
    return _UNITS.get(key.rpartition("_")[2], "") if "_" in key else ""


def _models(tops: Iterable[type[BaseModel]]) -> Iterator[str]:
    """Sections of models and of all that they have as parts, each with a table of its keys."""
    chosen = [*tops]
    references, whole = models_json_schema([(each, "validation") for each in chosen])
    schemas: dict[str, Any] = whole["$defs"]
    first = [references[each, "validation"]["$ref"].rpartition("/")[2] for each in chosen]
    classes = _classes()
    for name in dict.fromkeys([*first, *schemas]):
        schema = schemas[name]
        if "properties" not in schema:
            continue  # values of an enumeration, which are listed where it is the type of a key
        texts = _docstrings(classes[name]) if name in classes else {}
        heads = ("key", "type", "unit", "default", "meaning")
        lines = (
            (_code(key), _type(each, schemas), _unit(key), _default_of(key, each, schema), escape(meaning, quote=False))
            for key, each in schema["properties"].items()
            for meaning in [each.get("description") or texts.get(key) or _description_of_type(each, schemas)]
        )
        described = cleandoc(schema.get("description", "")).partition("\n\nArgs:")[0].partition("\n\nAttributes:")[0]
        yield f"## {schema['title'].lstrip('_')}\n\n{escape(described, quote=False)}\n\n{_table(heads, lines)}"


def _description_of_type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """First paragraph of what describes the class of a key, which then says what the key has."""
    found = re.search(r"#/\$defs/(\w+)", str(schema))
    return schemas[found[1]].get("description", "").partition("\n\n")[0] if found else ""


def _default_of(key: str, schema: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    if key in model.get("required", ()):
        return "required"
    default = schema.get("default")
    return "" if default is None or isinstance(default, dict | list) else _code(default)


def _type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:  # noqa: PLR0911 - a case for each kind
    """Return a type of a JSON Schema in words, with its bounds and a link to its section."""
    match schema:
        case {"$ref": str(reference)}:
            found = schemas[reference.rpartition("/")[2]]
            title = found["title"].lstrip("_")
            return f"[{title}](#{title.lower()})" if "properties" in found else _type(found, schemas)
        case {"anyOf": parts} | {"oneOf": parts} | {"allOf": parts}:
            known = dict.fromkeys(_type(each, schemas) for each in parts if each.get("type") != "null")
            return " or ".join(known)
        case {"const": value}:
            return _code(value)
        case {"enum": values}:
            return ", ".join(map(_code, values))
        case {"type": "array", "prefixItems": parts}:
            return f"list: {', '.join(_type(each, schemas) for each in parts)}"
        case {"type": "array"}:
            return f"list of {_type(schema.get('items', {}), schemas)}{_bounds(schema, 'minItems', 'maxItems')}"
        case {"type": "object"}:
            return f"map of {_type(schema.get('additionalProperties') or {}, schemas)}"
        case {"type": "string"}:
            return f"text{_bounds(schema, 'minLength', 'maxLength')}"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": str(kind)}:
            beyond = _bounds(schema, "exclusiveMinimum", "exclusiveMaximum", "><")
            return f"{kind}{_bounds(schema, 'minimum', 'maximum')}{beyond}"
    return "any"


def _bounds(schema: Mapping[str, Any], least: str, most: str, signs: str = "≥≤") -> str:
    found = [f"{sign} {schema[key]}" for sign, key in zip(signs, (least, most), strict=True) if key in schema]
    return f", {', '.join(found)}" if found else ""


@cache
def _classes() -> dict[str, type[BaseModel]]:
    """All models by the names that they may have in a JSON Schema."""
    found: dict[str, type[BaseModel]] = {}
    left: list[type[BaseModel]] = [BaseModel]
    while left:
        each = left.pop()
        found[each.__name__] = found[f"{each.__module__}__{each.__qualname__}".replace(".", "__")] = each
        left += each.__subclasses__()
    return found


def _docstrings(kind: type) -> dict[str, str]:
    """Docstrings of the attributes of a class and of its bases, by attribute."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith(("resources.", "csit_utils.")):
            found |= _docstrings_of(each.__module__).get(each.__qualname__, {})
    return found


@cache
def _docstrings_of(module: str) -> dict[str, dict[str, str]]:
    """Docstrings of attributes, by class of a module; Python itself does not keep them."""
    tree = ast.parse(getsource(import_module(module)))
    return {
        each.name: {
            before.target.id: str(after.value.value)
            for before, after in pairwise(each.body)
            if isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        }
        for each in tree.body
        if isinstance(each, ast.ClassDef)
    }
