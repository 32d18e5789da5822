"""Two other kinds of pairs, with the defaults: English to SQL, documentation to arguments."""
