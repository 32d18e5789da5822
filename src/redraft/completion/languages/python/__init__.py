"""Python: its functions are mined with `ast`, the code at a cursor is read with regexes."""
