"""Slips in the papers: the printed form with a witness, and the corrected form."""

PAPER = "Errata"
