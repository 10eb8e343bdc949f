"""One SQLite file for each home: its tables, their migrations, and one writer."""
