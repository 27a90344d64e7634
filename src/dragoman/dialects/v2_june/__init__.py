"""The draft of version 2 as it was in June 2026, which says version 2 as well."""
