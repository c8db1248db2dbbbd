"""Bounds of the address plan. No other imports: each start of a generator's worker would pay for them."""

SOURCES_PER_FLOW = 254
"""Source addresses of a flow, as in CSIT's density profiles."""
NO_SENDER = 0xC612_0000
"""198.18.0.0/15 is for measurements (RFC 2544), and no flow of a plan uses it: addresses of rules that none matches."""
MAX_INSTANCES = 254
"""Bounded by the second byte of the instances' subnets."""
MAX_SOURCES = 0xFFFE
"""Bounded by the two last bytes of the instances' subnets."""
MAX_NFS = 0xFFFF
"""Bounded by two bytes of the NFs' MAC addresses; NFs of both DUTs together."""
