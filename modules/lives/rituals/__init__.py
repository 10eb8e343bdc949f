"""How a SOUL keeps its rituals: it opens them on their days, and writes down what came of them."""
