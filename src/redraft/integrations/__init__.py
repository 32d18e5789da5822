"""Adapters to other libraries; each module needs the library of its name."""
