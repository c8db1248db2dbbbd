"""A testbed of emulated machines: QEMU guests with PCI NICs, cabled to each other and reached over SSH."""
