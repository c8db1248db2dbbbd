"""Virtual switches."""
