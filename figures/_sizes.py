"""How much a search for parameters looks at, where nothing else is asked for."""

PART = 6000  # rows
MOST_GRADIENTS = 10_000  # that tuned parameters may prescribe to a client, in all rounds together
