"""YAML reader with bounds of nesting, size and time.

A file of two kilobytes can stand for gigabytes: an alias repeats a whole tree, a merge key copies one, and readers of
both grow with the tree and not with the file. All bounds are checked before anything is constructed. PyYAML raises any
built-in exception for a scalar that it cannot convert (`2001-99-99`, `!!int ""`); here each is an error with its line.
"""

from collections.abc import Hashable
from typing import Any

import yaml

from resources.libraries.python.model.bounds import DEEPEST_NESTING, LONGEST_NUMBER, MOST_ITEMS

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: ten times as fast."""
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


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
        yaml.MarkedYAMLError: It is no YAML, or exceeds a bound: nesting, items with all aliases followed, digits of a
            number.
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
    """Refuse a document before a recursive function gets to see it."""
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

    Args:
        node: Root of the tree.
        known: Numbers of trees counted before, by identity; None while a tree is being counted.
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
    else:
        children = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        for child in children:
            number += _items(child, known)
        if number > MOST_ITEMS:
            text = f"{number:,} items, aliases included; at most {MOST_ITEMS:,} are possible"
            raise _refused(text, node.start_mark)
    known[id(node)] = number
    return number
