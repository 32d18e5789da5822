"""Metrics: scores of predictions, calibration, retrieval quality and bootstrap intervals."""
