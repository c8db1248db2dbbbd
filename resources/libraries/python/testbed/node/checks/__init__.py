"""What facts of nodes mean for a testbed. Pure: facts and topology in, findings out."""
