"""What all else stands on: array libraries, trees of arrays, the states of clients, checks of arguments, files.

It imports nothing of this package. A newcomer adds an array library in ``xp``, and nothing else.
"""
