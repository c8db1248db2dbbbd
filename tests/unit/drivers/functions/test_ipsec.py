"""IPsec tunnels as NFs without a machine: security associations, policies, devices, and what is missing."""

from resources.libraries.python.drivers.functions.ipsec import driver


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
