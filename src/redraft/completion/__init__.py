"""Code completion at the cursor of a Python buffer. Reads incomplete source; knows no editor."""
