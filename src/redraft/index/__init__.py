"""Indexes for nearest neighbours: of vectors, and of bags of words. Know no examples, no model."""
