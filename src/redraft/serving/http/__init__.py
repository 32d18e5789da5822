"""HTTP: models under their names, with a web page, for programs and for people."""
