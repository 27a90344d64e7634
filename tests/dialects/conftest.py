"""What the tests of the dialects share."""

import pytest

from tests.support.needs import need_typescript_sdk
from tests.support.schema_instances import schema_folder


@pytest.fixture
def schemas() -> None:
    """The official schemas, or a skip that says what is lacking."""
    if schema_folder() is None:
        need_typescript_sdk()
