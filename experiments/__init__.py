"""Research on top of Redraft: one package per experiment, from data to results.json to a page.

Not installed: run from the project's root, for instance `python -m experiments.hearthstone --help`.
"""
