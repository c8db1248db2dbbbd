"""What a test asks for: a cell, its network functions, its frames and its search goals."""
