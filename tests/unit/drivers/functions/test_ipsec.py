"""IPsec tunnels as NFs without a machine: security associations, policies, devices, and what is missing."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.functions.ipsec import driver
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.request.kinds import NfKind
from tests.unit.planning.polled_ports import together


def test_each_end_has_an_association_and_policies_of_its_own() -> None:
    lines = driver.batch(["aa" * 20, "bb" * 20]).splitlines()
    states = [line.split() for line in lines if line.startswith("xfrm state add")]
    policies = [line.split() for line in lines if line.startswith("xfrm policy add")]
    assert [(each[4], each[6], each[10], each[-1]) for each in states] == [
        ("127.0.0.1", "127.0.0.2", "0x1001", "1"),
        ("127.0.0.2", "127.0.0.1", "0x1002", "2"),
    ]
    for number, state in enumerate(states, 1):
        assert "rfc4106(gcm(aes)) " + ("0xaa" if number == 1 else "0xbb") in " ".join(state)
        assert "flag esn" in " ".join(state), "32 bits of sequence numbers end after an hour"
        own = [each for each in policies if each[each.index("if_id") + 1] == str(number)]
        assert [each[each.index("dir") + 1] for each in own] == ["out", "fwd", "in"]
        assert all(each[each.index("tmpl") + 2] == state[4] for each in own)


def test_a_kernel_without_xfrm_interfaces_or_esp_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "path_of", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(driver, "kernel_makes", lambda *_, **__: False)
    (problem,) = driver.missing()
    assert str(problem) == (
        "the kernel makes no XFRM interfaces for NFs of kind ipsec; boot a kernel with CONFIG_XFRM_INTERFACE"
    )
    nothing = cast(Any, SimpleNamespace())  # would fail on any use
    context = cast(Any, SimpleNamespace(fabric=nothing, lock=nothing, companions=lambda *_, **__: nothing))
    functions = driver.Ipsecs(nothing, context, together([NfKind("ipsec")]).functions)
    with pytest.raises(Unsupported, match="the kernel makes no XFRM interfaces"):
        functions.start()
    assert functions.facts() == {} and functions.processed() == {}
    monkeypatch.setattr(driver, "kernel_makes", lambda *requests, **_: bool(requests))
    (problem,) = driver.missing()
    assert str(problem) == (
        "the kernel has no ESP with AES-128-GCM for NFs of kind ipsec; boot a kernel with CONFIG_INET_ESP"
    )
    monkeypatch.setattr(driver, "path_of", lambda _: None)
    (problem,) = driver.missing()
    assert "ip missing for NFs of kind ipsec" in str(problem)
