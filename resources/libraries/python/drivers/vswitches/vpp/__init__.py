"""VPP as the vSwitch: a bridge domain per L2 segment."""
