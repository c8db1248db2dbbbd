"""Search over deployment sizes. Pure, given functions that deploy and load a size."""
