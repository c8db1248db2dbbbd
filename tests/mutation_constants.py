"""Changes of numbers outside functions, which mutmut leaves alone: thresholds, tables and defaults of fields."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One number of a module changed."""

    line: int
    before: str
    """As written in the module."""
    after: str
    text: str
    """The whole module with the change."""


def changes(text: str) -> Iterator[Change]:
    """Double, halve and zero each number that a module or a class assigns; 0 becomes 1.

    Args:
        text: Source of the module.
    """
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for node in _numbers(ast.parse(text)):
        # Columns of the syntax tree count bytes; a number is on one line.
        line, start, end = lines[node.lineno - 1], node.col_offset, node.end_col_offset
        assert isinstance(node.value, int | float)
        for after in _others(node.value):
            rows = [*lines]
            rows[node.lineno - 1] = line[:start] + after.encode() + line[end:]
            yield Change(node.lineno, line[start:end].decode(), after, b"".join(rows).decode())


def _others(value: float) -> list[str]:
    if not value:
        return ["1"]
    half = value // 2 if isinstance(value, int) else value / 2
    return list(dict.fromkeys(f"{other!r}" for other in (value * 2, half, type(value)())))


def _numbers(tree: ast.AST) -> Iterator[ast.Constant]:
    """Those in assigned values; bodies and parameters of functions, annotations and decorators are left out."""
    for statement in ast.iter_child_nodes(tree):
        if isinstance(statement, ast.ClassDef):
            yield from _numbers(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from (
                node
                for node in ast.walk(statement.value)
                if isinstance(node, ast.Constant) and type(node.value) in (int, float)
            )
