"""Share the fixtures of the product's tests."""

from tests.conftest import examples

__all__ = ["examples"]
