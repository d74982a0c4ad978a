"""What all else stands on: array libraries, trees, rounds and random streams, states of clients, checks, files.

It imports nothing of this package. A newcomer adds an array library in ``xp``, and nothing else.
"""
