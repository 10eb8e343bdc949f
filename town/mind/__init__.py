"""The town's scripted mind: it reads the facts of a request and answers with text. No HTTP here."""
