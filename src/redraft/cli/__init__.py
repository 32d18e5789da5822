"""The command line: one file a verb. Results on stdout, progress and errors on stderr."""
