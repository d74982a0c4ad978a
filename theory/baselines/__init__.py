"""What is known of the methods that the papers compare theirs with, quoted with the methods' own sources."""

PAPER = "Methods that the papers compare"
