"""Completion with a language model: collection of answers, training of the mixture, measurement."""
