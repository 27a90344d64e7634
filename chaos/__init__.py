"""`./dev chaos`: several nodes and a database under load, broken in every way that a checker can see through."""
