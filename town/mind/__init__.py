"""The town's scripted mind: it reads the facts of a request and answers in words. No HTTP here."""
