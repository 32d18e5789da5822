"""Completion from the code of a project: training of the ranker, and its measurement."""
