"""Policies: network functions allowed in a chain, and their order: the policies of a study of chains.

A policy is an expression over names of VNFs. The three operators are those of "Probius: Automated Approach for VNF and
Service Chain Analysis in Software-Defined NFV" (Nam et al., SOSR 2018), section 3.2; brackets and more than two
operands are an extension. From the operator that binds most to the one that binds least:

    A > B      B comes after A, in a chain that has both
    A & B      both, or none of them
    A | B      at most one of them

So `A > B & C > D | E` means `((A > B) & (C > D)) | E`. All three may be written with any number of operands: in
`A > B > C` those that are there keep that order, `A & B & C` are all there or none, and of `A | B | C` there is one at
most.

An operand may be an expression itself. Two sentences say what that means:

 1. Such an operand is in a chain when at least one of its VNFs is; its places there are the places of its VNFs.
 2. Every operator of a policy is a condition of its own, wherever it stands, and a chain must obey all of them.

Examples: `A & (B > C)`: A is there exactly when B or C (or both) are, and C comes after B. `(A | B) > C`: not both of A
and B, and C after the one that is there. `(A & B) > C`: A and B together or not at all, and C after both.
"""
