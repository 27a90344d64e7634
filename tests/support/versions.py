"""In which version of the protocol a test speaks: in both, or in one where the other can hardly differ.

What is left out of the fast lane is in the slow one.
"""

import pytest

slow = pytest.mark.slow
both_versions = pytest.mark.parametrize("version", [1, 2])
both_protocols = pytest.mark.parametrize("protocol", [1, 2])  # for tests that call the version so
mostly_v1 = pytest.mark.parametrize("version", [1, pytest.param(2, marks=slow)])
mostly_v2 = pytest.mark.parametrize("version", [pytest.param(1, marks=slow), 2])
