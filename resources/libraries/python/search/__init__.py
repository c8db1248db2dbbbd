"""Pure: searches that take a measure callable and know no machine."""
