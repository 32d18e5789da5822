"""Languages that can be completed: how to mine functions and how to read the code at a cursor."""
