"""Network functions as nginx: datagrams are taken in and sent on, a session each."""
