"""Secrets and control characters, kept out of every text that leaves the program.

Values are secret that `env:` and `keyring:` resolve to, and those of variables whose names look like secrets. They are
known to the whole process: texts pass `outgoing` or `redacted` where they are written to a log, a journal, a record, a
message or the console.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from html import escape
from shlex import quote
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote as url_quote

if TYPE_CHECKING:
    from pydantic import BaseModel

MASK = "***"
"""Takes the place of a secret."""
SHORTEST_VALUE = 4
"""Shorter values are not searched for: they occur in every text. `redacted_words` masks them by their variable."""
_SHORTEST_INSIDE_WORDS = 6
"""Shorter values are masked as whole words only."""
_NAME = re.compile(r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|(API|PRIVATE|ACCESS)KEY")
_IS_ABOUT_ONE = re.compile(r"(FILE|PATH|FOLDER|DIR|NAME|URL)$")
"""Names of variables that say where a secret is."""
_WORD = re.compile(r"(-v|--v[a-z]*=?)?(?P<name>[^:=/\\]{1,80}):(?P<value>.+)", re.DOTALL | re.IGNORECASE)
"""A Robot variable on a command line."""
_LONG_LINE = 16
"""Characters of a line of a secret, such as a private key, from which on the line alone is masked too."""
INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff"
)
"""Characters that move the cursor, change the direction of writing or are no characters, for a class of a regular
expression; newline and tab stay, and so does the carriage return of a line's end."""
_INVISIBLE = re.compile(rf"[{INVISIBLE}]|\r(?!\n)")
_ESCAPED = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4}|\\r\\n|\\[^u]", re.IGNORECASE)
"""A character that is escaped in JSON, or two halves of one."""
_Model = TypeVar("_Model", bound="BaseModel")
_adding = Lock()
_values: dict[str, None] = {}


@lru_cache(maxsize=4096)  # the same variables are looked at in every test
def is_secret_name(name: str) -> bool:
    """Whether the value of a variable with this name is a secret: `TOKEN`, `LAB_PASSWORD`, `api key`."""
    plain = re.sub(r"[\s_.-]", "", name).upper()
    return _NAME.search(plain) is not None and _IS_ABOUT_ONE.search(plain) is None


def keep_secret(*values: str) -> None:
    """Mask these values in all texts from now on."""
    lines = [line for each in values for line in each.splitlines() if len(line.strip()) >= _LONG_LINE]
    stripped = (each.strip() for each in (*values, *lines))
    new = [each for each in stripped if len(each) >= SHORTEST_VALUE and each not in _values]
    if new:
        with _adding:
            _values.update(dict.fromkeys(new))
            _pattern.cache_clear()


def keep_named_secrets(variables: Mapping[str, object]) -> None:
    """Mask the values of those variables whose names look like secrets, with the items of lists and mappings."""
    for name in variables:  # Robot and the environment make a value when it is read; there are a hundred names
        if is_secret_name(name):
            keep_secret(*_texts(variables[name]))


def redacted(text: str) -> str:
    """Return a text with a mask in the place of every known secret, also of one that is quoted or escaped in it."""
    pattern = _pattern()
    return text if pattern is None else pattern.sub(MASK, text)


def outgoing(text: str) -> str:
    """Return a text as a log or terminal may show it: no secrets, and control characters escaped."""
    return visible(redacted(text))


def visible(text: str) -> str:
    """Return a text with its control characters escaped."""
    if (text.isascii() and text.isprintable()) or _INVISIBLE.search(text) is None:
        return text
    # In the memory of the result: a match takes a hundred bytes, and a node may send millions of such characters.
    lines = text.translate(_escapes()).split("\r\n")
    return "\r\n".join(line.replace("\r", "\\r") for line in lines)


@cache
def _escapes() -> dict[int, str]:
    letters = re.findall(f"[{INVISIBLE}]", "".join(map(chr, range(0x10000))))
    return {ord(letter): letter.encode("unicode_escape").decode() for letter in letters}


def visible_json(line: str) -> str:
    """Return JSON in ASCII whose texts have their control characters escaped, as `visible` does."""
    return _ESCAPED.sub(lambda found: _visible_escape(found[0]), line)


@lru_cache(256)
def _visible_escape(escaped: str) -> str:
    letter = json.loads(f'"{escaped}"')
    return json.dumps(visible(letter))[1:-1] if _INVISIBLE.match(letter) else escaped


def command_text(*words: object) -> str:
    """Return a command line as a message shows it, to be pasted into a shell, whatever is in its words."""
    return " ".join(map(_shell_word, map(str, words)))


def _shell_word(word: str) -> str:
    if _INVISIBLE.search(word) is None and "\n" not in word and "\t" not in word:
        return quote(word)
    return f"$'{''.join(map(_shell_letter, word))}'"


def _shell_letter(letter: str) -> str:
    """Return a letter as it is written between `$'` and `'`."""
    if letter in "\n\t\\'" or _INVISIBLE.match(letter):
        return f"\\{letter}" if letter in "\\'" else f"\\u{ord(letter):04x}"
    return letter


def with_texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with all its texts changed; keys and numbers stay."""
    match value:
        case str():
            return change(value)
        case list():
            return [with_texts(each, change) for each in value]
        case dict():
            return {key: with_texts(each, change) for key, each in value.items()}
    return value


def redacted_json(line: str) -> str:
    """Return a JSON document with all its texts redacted."""
    if redacted(line) == line:
        return line
    return json.dumps(with_texts(json.loads(line), redacted), separators=(",", ":"))


def redacted_model(model: _Model) -> _Model:
    """Return a pydantic model with all its texts redacted."""
    if _pattern() is None:
        return model
    shown = redacted_json(text := model.model_dump_json())
    return model if shown == text else type(model).model_validate_json(shown)


def redacted_words(argv: Iterable[str]) -> list[str]:
    """Return a command line with a mask in the place of every secret, known or given here, as in `-v TOKEN:x`."""
    words = []
    for word in argv:
        found = _WORD.match(word)
        if found is not None and is_secret_name(found["name"]):
            keep_secret(found["value"], found["value"].rpartition(": ")[2])  # `TOKEN: str:x` has a type
            word = f"{word[: found.start('value')]}{MASK}"  # noqa: PLW2901
        words.append(redacted(word))
    return words


def masked_words(argv: Sequence[str]) -> list[str]:
    """Return those words of a command line that a mask has made unusable."""
    return [word for word in argv if MASK in word]


@cache
def _pattern() -> re.Pattern[str] | None:
    forms = {form: len(value) for value in list(_values) for form in _forms(value)}
    if not forms:
        return None
    # The longest first: a secret may be the beginning of another one.
    parts = [
        re.escape(form) if length >= _SHORTEST_INSIDE_WORDS else rf"(?<![^\W_]){re.escape(form)}(?![^\W_])"
        for form, length in sorted(forms.items(), key=lambda item: -len(item[0]))
    ]
    return re.compile("|".join(parts))


def _forms(value: str) -> Iterable[str]:
    """A value, and what quoting and escaping make of it."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield escape(value, quote=False).replace('"', "&quot;")
    yield escape(value)
    yield quoted[1:-1] if (quoted := quote(value)) != value else value
    yield url_quote(value, safe="")


def _texts(value: object) -> list[str]:
    match value:
        case None | bool():
            return []
        case Mapping():
            return [text for each in value.values() for text in _texts(each)]
        case list() | tuple() | set() | frozenset():
            return [text for each in value for text in _texts(each)]
        case bytes():
            return [value.decode(errors="replace")]
    return [str(value)]
