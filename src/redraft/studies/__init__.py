"""Experiments: a table of the paper, or of ours, from data to results.json. One file each."""
