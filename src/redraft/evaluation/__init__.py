"""Predictions to numbers, tables and plots. Knows outputs and references; knows no model."""
