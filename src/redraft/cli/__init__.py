"""The command line: one file per command. Results on stdout, progress and errors on stderr."""
