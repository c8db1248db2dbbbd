"""Structure-aware damage to files: misplaced tokens of their syntax, extreme numbers, cut and doubled parts."""

import random
import re

from hypothesis import strategies as st

NUMBERS = (
    "0", "-1", "1e400", "-0.0", "NaN", ".nan", ".inf", "Infinity", "1000000000", "1e12", "4294967296", "9" * 400,
    "0x7fffffffffffffff", "2001-99-99", "1_000", "01", "''", "null", "true",
)  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][\w-]{2,}")


def damaged(text: str, pieces: tuple[str, ...], edits: int = 4) -> st.SearchStrategy[str]:
    """Texts near a good one."""
    edit = st.tuples(
        st.sampled_from(["number", "word", "insert", "delete", "double", "truncate", "repeat"]),
        st.integers(0, max(0, len(text))),
        st.integers(0, 80),
        st.one_of(st.sampled_from(pieces), st.sampled_from(NUMBERS), st.text(max_size=12)),
    )
    return st.lists(edit, min_size=1, max_size=edits).map(lambda rows: _applied(text, rows))


def _applied(text: str, rows: list[tuple[str, int, int, str]]) -> str:
    for kind, place, length, piece in rows:
        begin = min(place, len(text))
        match kind:
            case "number":
                text = _replaced(_NUMBER, text, begin, piece)
            case "word":
                text = _replaced(_WORD, text, begin, piece)
            case "insert":
                text = text[:begin] + piece + text[begin:]
            case "delete":
                text = text[:begin] + text[begin + length :]
            case "double":
                text = text[: begin + length] + text[begin:]
            case "truncate":
                text = text[:begin]
            case "repeat":
                text = text[:begin] + piece * (length * 20) + text[begin:]
    return text


def _replaced(pattern: re.Pattern[str], text: str, begin: int, piece: str) -> str:
    found = pattern.search(text, begin)
    return text if found is None else text[: found.start()] + piece + text[found.end() :]


def mutated(chance: random.Random, content: bytes, pieces: tuple[bytes, ...]) -> bytes:
    """Bytes near good ones, made fast."""
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randint(0, len(content)), chance.choice((0, 1, 2, 8, 40, 200))
        match chance.randrange(6):
            case 0:
                piece = chance.choice(pieces)
            case 1:
                piece = chance.choice(pieces) * chance.choice((2, 40, 1000))
            case 2:
                piece = chance.choice(NUMBERS).encode()
            case 3:
                piece = chance.randbytes(min(length, 8))
            case 4:
                piece = content[at : at + length] * 2
            case _:
                piece, length = b"", chance.choice((length, len(content)))
        content = content[:at] + piece + content[at + length :]
    return content
