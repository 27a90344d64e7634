from typing import Any
def after(one: int, other: int, name: str, message: Any) -> Any:
    return message
