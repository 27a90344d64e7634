"""What a library has, and who comes."""

from dataclasses import dataclass, field


@dataclass
class Book:
    title: str
    loan: "Loan | None" = None  # noqa: F821


@dataclass
class Member:
    name: str
    loans: list = field(default_factory=list)
    owes: int = 0
