"""Hearthstone cards to Python classes: the table of the paper."""
