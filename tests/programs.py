"""Programs that some tests drive, and that a machine may lack."""

import os
import shutil

import pytest


def program(*names: str) -> str:
    """Where the first of these programs is that is installed; without any the test is skipped.

    Where everything must run, REDRAFT_TEST_ALL is set and the test fails instead.
    """
    for name in names:
        if found := shutil.which(name):
            return found
    message = f"{names[0]} is not installed; get it with: make system-deps"
    if os.environ.get("REDRAFT_TEST_ALL"):
        pytest.fail(message)
    pytest.skip(message)
