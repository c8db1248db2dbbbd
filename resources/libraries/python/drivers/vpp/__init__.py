"""VPP: what its use as vSwitch and as NF have in common."""
