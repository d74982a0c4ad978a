"""How many rounds every method needs, whatever its clients compute between them."""

PAPER = "Lower bounds on communication"
