"""A testbed: its nodes with processors, memory, NICs and access, and the cables between them."""
