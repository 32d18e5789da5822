"""Tensor to tensor. Knows no text and no files."""
