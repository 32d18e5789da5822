"""Completion of Python functions in a project and across packages."""
