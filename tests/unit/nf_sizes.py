"""Sizes of NFs for property tests."""

from hypothesis import strategies as st

from resources.libraries.python.model.request.nf_size import NfSize

nf_sizes = st.just(NfSize.HALF) | st.integers(1, 6).map(NfSize.of)
"""Half a core, and any small number of whole ones."""
