"""Network functions as virtual machines whose Linux guests run an application: nftables, or a program that monitors."""
