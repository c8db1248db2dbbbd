"""Kinds of network functions are words that drivers give a meaning."""

import json
import pickle

import pytest
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.model.request.kinds import NfKind, are_vms

KINDS = TypeAdapter(NfKind)


@pytest.mark.parametrize("kind", [NfKind(name) for name in driver_registry.functions()])
def test_a_kind_is_a_word_in_files_and_keeps_its_meaning(kind: NfKind) -> None:
    read = KINDS.validate_json(KINDS.dump_json(kind))
    assert read == kind and type(read) is NfKind and read.driver.name == kind
    assert json.dumps(kind) == f'"{kind}"'
    assert type(pickle.loads(pickle.dumps(kind))) is NfKind  # noqa: S301 - made on the line itself
    assert kind.is_vm == (kind.in_guest is not None or kind in {"qemu", "qemu_vpp"})
    assert are_vms([kind]) is kind.is_vm


def test_an_unknown_kind_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match=r"Input should be .*'linux_router'.*'qemu_nginx_proxy'"):
        KINDS.validate_python("linux_ruter")


def test_the_schema_lists_all_kinds() -> None:
    assert KINDS.json_schema() == {"type": "string", "enum": [*driver_registry.functions()]}
