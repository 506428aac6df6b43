"""What a study looks like: tables, pictures and pages, and how they reach a folder."""
