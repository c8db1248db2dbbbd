"""From output.xml files and result records to typed rows and tables."""
