"""`python -m tools.reference`: write the pages of `docs/reference`, which are made from the code. `./dev docs` does."""

from pathlib import Path

from tools.reference.pages import pages

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def main() -> None:
    (DOCS / "reference").mkdir(exist_ok=True)
    made = pages()
    for path, text in made.items():
        (DOCS / path).write_text(text, encoding="utf-8")
    for left in set((DOCS / "reference").glob("*.md")) - {DOCS / path for path in made}:
        left.unlink()


if __name__ == "__main__":
    main()
