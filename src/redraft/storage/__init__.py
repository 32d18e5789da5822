"""Files of models and examples: checked on reading, replaced atomically, locked while they change.

Knows no model.
"""
