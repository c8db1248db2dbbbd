"""Structure-aware damage to files: misplaced tokens of their syntax, extreme numbers, cut and doubled parts."""

import random
import re

from hypothesis import strategies as st

NUMBERS = (
    "0", "-1", "1e400", "-0.0", "NaN", ".nan", ".inf", "Infinity", "1000000000", "1e12", "4294967296", "9" * 400,
    "0x7fffffffffffffff", "2001-99-99", "1_000", "01", "''", "null", "true",
)  # fmt: skip
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_WORD = re.compile(rb"[A-Za-z_][\w-]{2,}")


def damaged(text: str, pieces: tuple[str, ...]) -> st.SearchStrategy[str]:
    content, tokens = text.encode(), tuple(piece.encode(errors="surrogatepass") for piece in pieces)
    chances = st.integers(0, 1 << 64).map(random.Random)
    return chances.map(lambda chance: mutated(chance, content, tokens).decode(errors="replace"))


def mutated(chance: random.Random, content: bytes, pieces: tuple[bytes, ...]) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randint(0, len(content)), chance.choice((0, 1, 2, 8, 40, 200))
        match chance.randrange(8):
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
            case 5:
                piece, length = b"", chance.choice((length, len(content)))
            case kind:
                pattern, new = (
                    (_NUMBER, chance.choice(NUMBERS).encode()) if kind == 6 else (_WORD, chance.choice(pieces))
                )
                found = pattern.search(content, at)
                at, length, piece = (at, 0, b"") if found is None else (found.start(), len(found[0]), new)
        content = content[:at] + piece + content[at + length :]
    return content
