"""Loading of YAML and JSON files into frozen types. An error is one sentence with file, line and path inside it.

YAML is read within bounds of nesting, size and time. A file of two kilobytes can stand for gigabytes: an alias repeats
a whole tree, and a merge key copies one. All bounds are checked before anything is constructed. PyYAML raises any
built-in exception for a scalar that it cannot convert (`2001-99-99`, `!!int ""`); here each is an error with its line.
"""

import json
import logging
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Inconsistency, Location, hint, reason_of_value, validate_yaml
from resources.libraries.python.model.bounds import (
    ASKED,
    DEEPEST_NESTING,
    LARGEST_INPUT_BYTES,
    LONGEST_NUMBER,
    MAX_ITEMS,
    quoted,
)
from resources.libraries.python.model.testbed import csit_topology
from resources.libraries.python.model.testbed.csit_topology import Secrets, Translation
from resources.libraries.python.model.testbed.topology import Topology

Model = TypeVar("Model", bound=BaseModel)
_log = logging.getLogger(__name__)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: ten times as fast."""
_TAG_DIRECTIVE = re.compile("(?:^|[\r\n\x85\u2028\u2029\ufeff])%TAG")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def load_topology(path: Path, secrets: Secrets = Secrets.REFUSE) -> Topology:
    """Read a topology file: one of this project, or one of FD.io CSIT, known by its form.

    `secrets`: What to do with passwords and keys in a file of CSIT; `IGNORE` logs a warning.

    Raises:
        ConfigError: The file is missing, is no YAML, is no topology, is a template, or has a secret in it.
    """
    root, data = _read_topology(path)
    if is_csit := csit_topology.is_csit(data):
        made = _translated(path, root, data, secrets)
        data = made.data
        if made.secrets:
            _log.warning(
                "%s: ignored %s; `./csit convert %s` writes a file without",
                path,
                _listed(made.secrets),
                path,
            )
    topology = _validated(path, root, data, Topology)
    for problem in topology.address_problems:
        text = f"{path}:{_locate(root, problem.location, missing=False)}{problem}"
        if not is_csit:
            raise ConfigError(text)
        _log.warning("%s", text)
    return topology


def convert_topology(path: Path) -> tuple[Topology, Translation]:
    """Read a topology file of FD.io CSIT, with references in place of its secrets.

    Returns:
        The testbed, and the file in this project's form.

    Raises:
        ConfigError: The file cannot be read, is a template, is no topology, or is not one of CSIT.
    """
    root, data = _read_topology(path)
    if not csit_topology.is_csit(data):
        raise ConfigError(
            f"{path}: no topology file of FD.io CSIT: metadata has neither `schema` nor a version below 1"
        )
    made = _translated(path, root, data, Secrets.REFER)
    return _validated(path, root, made.data, Topology), made


def _read_topology(path: Path) -> tuple[yaml.Node | None, Any]:
    if found := csit_topology.placeholder(text := text_of(path)):
        raise ConfigError(f"{path}:{found[1]}: a template: fill in {found[0]} and all other placeholders first")
    return _read(path, text)


def _translated(path: Path, root: yaml.Node | None, data: Mapping[str, Any], secrets: Secrets) -> Translation:
    try:
        return csit_topology.translate(data, csit_topology.name_of(path.stem), secrets)
    except Inconsistency as error:
        raise ConfigError(f"{path}:{_locate(root, error.location, missing=False)}{error}") from error


def _listed(places: Sequence[str]) -> str:
    return places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"


def load_yaml(path: Path, model: type[Model], settings: Mapping[str, str] = MappingProxyType({})) -> Model:
    """Read a YAML file into a model, telling of an error where in the file it is.

    `settings`: Values in YAML by key, as if the file had them; `events.0.hold_s` is a key inside another.

    Raises:
        ConfigError: The file is missing, is no YAML, has a key twice, or does not fit the model.
    """
    root, data = _read(path, text_of(path))
    for key, text in settings.items():
        _put(path, data, key, text)
    try:
        return validate_yaml(model, data, ASKED)
    except ValidationError as error:
        raise ConfigError(_of_settings(path, root, error, model, settings)) from error


def _put(path: Path, data: object, key: str, text: str) -> None:
    *outer, last = (int(step) if step.isdigit() else step for step in quoted(key).split("."))
    try:
        for step in outer:
            data = data[step]  # type: ignore[index]  # else it is an error, too
        data[last] = _read(Path(f"SET {key}"), text)[1]  # type: ignore[index]
    except (LookupError, TypeError) as error:
        raise ConfigError(f"SET {quoted(key)}: {path} has nothing there") from error


def _of_settings(
    path: Path, root: yaml.Node | None, error: ValidationError, model: type[BaseModel], settings: Mapping[str, str]
) -> str:
    """The first error as one sentence, which begins with the value that was set, where one was."""
    for row in error.errors(include_url=False):
        place = [*map(str, row["loc"])]
        for key, text in settings.items():
            if place[: key.count(".") + 1] == key.split("."):
                return f"SET {quoted(key)}={quoted(text)}: {reason_of(row, model, written=text)} ({path})"
    given = ";".join(f"{key}={text}" for key, text in settings.items())
    return (f"SET {quoted(given)}: " if given else "") + _sentence(path, root, error, model)


def load_json(path: Path, model: type[Model]) -> Model:
    """The same for a JSON file. Its types are JSON's: the text "2" is no number.

    Raises:
        ConfigError: The file is missing, is no JSON, has a key twice, or does not fit the model.
    """
    text = text_of(path)
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON: {quoted(str(error))}") from error
    try:
        # JSON is YAML, whose reader knows lines, but for tabs. Between the tokens of JSON a blank says the same.
        root = compose(text.replace("\t", " "))
        _refuse_repeated_keys(path, root, (), set())
    except yaml.YAMLError as error:
        raise ConfigError(_unreadable(path, error, "cannot be read")) from error
    try:
        return model.model_validate_json(text, strict=True, context=ASKED)
    except ValidationError as error:
        raise ConfigError(_sentence(path, root, error, model)) from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def text_of(path: Path) -> str:
    """Return the text of a file of at most `LARGEST_INPUT_BYTES`, in UTF-8, or in UTF-16 with a byte order mark.

    Raises:
        ConfigError: It cannot be read, is no regular file, is too large, or is in another encoding.
    """
    content = content_of(path, LARGEST_INPUT_BYTES)
    encoding = "UTF-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "UTF-8"
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte {content[error.start]:#04x} is not {encoding}"
        raise ConfigError(f"{path}:{line}: cannot be read: {what}") from error


def content_of(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file of at most so many bytes; no more of a larger one is read.

    Raises:
        ConfigError: It cannot be read, is no regular file, or is too large.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: cannot be read: not a regular file")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > most_bytes:
        raise ConfigError(f"{path}: larger than {most_bytes:,} bytes")
    return content


def _read(path: Path, text: str) -> tuple[yaml.Node | None, Any]:
    """The nodes of a file, which know their lines, and its content."""
    try:
        root = compose(text)
        _refuse_repeated_keys(path, root, (), set())
        return root, construct(root)
    except yaml.YAMLError as error:
        raise ConfigError(_unreadable(path, error, "not valid YAML")) from error


def _unreadable(path: Path, error: yaml.YAMLError, what: str) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"{path}: {what}: {quoted(' '.join(str(error).split()))}"
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    return f"{path}:{line}: {what}: {quoted(error.problem or error.context or 'it cannot be parsed')}"


def _validated(path: Path, root: yaml.Node | None, data: object, model: type[Model]) -> Model:
    try:
        return validate_yaml(model, data, ASKED)
    except ValidationError as error:
        raise ConfigError(_sentence(path, root, error, model)) from error


def _refuse_repeated_keys(path: Path, node: yaml.Node | None, location: Location, visited: set[int]) -> None:
    """YAML readers keep the last of two equal keys in silence; that would hide a duplicate node or port."""
    if id(node) in visited:  # an anchor may be used twice, and may even contain itself
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{path}:{line}: a key has to be a word or a number, not a list or a mapping")
            if key.value in seen:
                where = quoted(".".join(map(str, (*location, key.value))))
                raise ConfigError(f"{path}:{line}: {where}: duplicate key, first on line {seen[key.value]}")
            seen[key.value] = line
            _refuse_repeated_keys(path, value, (*location, key.value), visited)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _refuse_repeated_keys(path, value, (*location, index), visited)


def _sentence(path: Path, root: yaml.Node | None, error: ValidationError, model: type[BaseModel]) -> str:
    """The first error as one sentence, with the number of the others."""
    errors = error.errors(include_url=False)
    # An unknown key explains more than the missing one it was meant to be; of the members of a union, the one that got
    # furthest is the one that was meant.
    first = max(errors, key=lambda row: (row["type"] == "extra_forbidden", len(row["loc"])))
    missing = [
        str(row["loc"][-1]) for row in errors if row["type"] == "missing" and row["loc"][:-1] == first["loc"][:-1]
    ]
    cause = first.get("ctx", {}).get("error")
    inside = cause.location if isinstance(cause, Inconsistency) else ()
    place = _locate(root, (*first["loc"], *inside), missing=first["type"] == "missing")
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    keys = {key.value for key, _ in root.value} if isinstance(root, yaml.MappingNode) else set()
    instead = "; this is a topology file" if model is not Topology and {"metadata", "nodes"} <= keys else ""
    return f"{path}:{place}{reason_of(first, model, missing, place.written)}{others}{instead}"


def reason_of(
    error: ErrorDetails, model: type[BaseModel], missing: Sequence[str] = (), written: str | None = None
) -> str:
    """Return what is wrong with a value, without its place.

    `missing`: Keys that are missing beside it; an unknown key may be meant to be one.
    """
    if error["type"] != "extra_forbidden":
        return reason_of_value(error, written)
    word = error["loc"][-1]
    return f"unknown key{hint(word, missing) or hint(word, sorted(_field_names(model, set())))}"


def _field_names(model: object, seen: set[object]) -> set[str]:
    """Names of all fields of a model and of the models inside it."""
    if model in seen:
        return set()
    seen.add(model)
    names: set[str] = set()
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            names |= {name} | _field_names(field.annotation, seen)
        if role := getattr(model, "ROLE", None):
            names |= _field_names(driver_registry.settings_of(role), seen)
    for argument in getattr(model, "__args__", ()):
        names |= _field_names(argument, seen)
    return names


class _Place(NamedTuple):
    """A place in a file; as text `12: nodes.TG.cpus: `."""

    keys: Location
    line: int
    written: str | None
    """The scalar there as it stands in the file, where it has no quotes."""

    def __str__(self) -> str:
        return f"{self.line}: " + (quoted(f"{'.'.join(map(str, self.keys))}: ") if self.keys else "")


def _locate(root: yaml.Node | None, location: Location, *, missing: bool) -> _Place:
    """The part of a pydantic location that is in the file.

    A pydantic location also names members of unions, which are not in the file, and keys that are missing there.
    """
    node, line = root, 1
    found: list[int | str] = []
    for index, step in enumerate(location):
        if isinstance(node, yaml.MappingNode):
            names = (str(step), csit_topology.THEIRS.get(str(step)))
            entry = next(((key, value) for key, value in node.value if key.value in names), None)
            if entry is not None:
                line, node = entry[0].start_mark.line + 1, entry[1]
                found.append(entry[0].value)
            elif missing and index == len(location) - 1:
                found.append(step)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
            found.append(step)
    written = node.value if isinstance(node, yaml.ScalarNode) and not node.style else None
    return _Place(tuple(found), line, written)


class _Constructor(yaml.constructor.SafeConstructor):
    """SafeConstructor whose errors all have a place in the file."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - as in PyYAML
        """Construct the value of a node.

        Raises:
            yaml.MarkedYAMLError: Its scalar is not what its tag says, or its key cannot be one.
        """
        try:
            return super().construct_object(node, deep=deep)
        except yaml.MarkedYAMLError:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            kind = node.tag.rpartition(":")[2]
            text = (
                f"'{node.value}' is not a valid {kind}" if isinstance(node, yaml.ScalarNode) else f"not a valid {kind}"
            )
            raise yaml.constructor.ConstructorError(None, None, text, node.start_mark) from error


def _refused(reason: str, mark: Any) -> yaml.MarkedYAMLError:  # noqa: ANN401 - libyaml's marks are of another type
    return yaml.composer.ComposerError(None, None, reason, mark)


def compose(text: str) -> yaml.Node | None:
    """Parse a document into nodes, which know their lines.

    Raises:
        yaml.MarkedYAMLError: It is no YAML, has a NUL character, or exceeds a bound: nesting, items with all aliases
            followed, digits of a number.
        yaml.YAMLError: It has characters that YAML does not allow.
    """
    _check_nesting(text)
    root = yaml.compose(text, Loader=_LOADER)
    if root is not None:
        _items(root, {})
    return root


def construct(root: yaml.Node | None) -> Any:  # noqa: ANN401 - whatever the file says
    """Turn nodes into dicts, lists and scalars.

    Raises:
        yaml.MarkedYAMLError: A scalar is not what its tag says, or a key cannot be one.
    """
    return None if root is None else _Constructor().construct_document(root)


def _check_nesting(text: str) -> None:
    """Refuse a document before a recursive function gets to see it, and before libyaml compares directives in pairs."""
    if directive := _TAG_DIRECTIVE.search(text):
        line = text.count("\n", 0, directive.end())
        raise _refused("a %TAG directive is not supported", yaml.Mark("", directive.end(), line, 0, None, 0))
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST_NESTING:
                raise _refused(f"nested deeper than {DEEPEST_NESTING} levels", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _items(node: yaml.Node, known: dict[Hashable, int | None]) -> int:
    """Number of nodes in a tree, each alias counted as the tree that it repeats.

    `known`: Numbers of trees counted before, by identity; None while a tree is being counted.
    """
    if id(node) in known:
        number = known[id(node)]
        if number is None:
            raise _refused("contains itself by an alias", node.start_mark)
        return number
    known[id(node)] = None
    number = 1
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            text = f"a number of {len(node.value):,} characters; at most {LONGEST_NUMBER} are possible"
            raise _refused(text, node.start_mark)
        if "\0" in node.value:  # no path, argument or variable of a program can have it
            raise _refused("a NUL character", node.start_mark)
    else:
        children = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        for child in children:
            number += _items(child, known)
        if number > MAX_ITEMS:
            text = f"{number:,} items, aliases included; at most {MAX_ITEMS:,} are possible"
            raise _refused(text, node.start_mark)
    known[id(node)] = number
    return number
