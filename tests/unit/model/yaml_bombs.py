"""YAML of two kilobytes that stands for gigabytes."""

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
)
MERGE_BOMB = "\n".join(
    ["m0: &m0 {k0: 1}"]
    + [f"m{level}: &m{level} {{<<: [{', '.join([f'*m{level - 1}'] * 20)}], k{level}: 1}}" for level in range(1, 12)]
)
