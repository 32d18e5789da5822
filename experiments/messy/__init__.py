"""Messy data made from a seed: a support team's pairs, nonsense inputs, and revalued questions."""

NO_ANSWER = "-- no answer"
"""The output of a question that cannot be answered: a file of pairs has no empty outputs."""
