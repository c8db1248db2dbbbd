"""Linux bridges as the vSwitch."""
