"""Tests, in rooms like those of dualopt; what is about all of them, and programs, lie loose."""
