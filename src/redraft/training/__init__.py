"""Training: one loop for all learned parts, from examples to a fitted model."""
