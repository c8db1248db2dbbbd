"""One file per command; `csit_utils.cli` lists them."""
