"""The theorems of the papers, executable."""
