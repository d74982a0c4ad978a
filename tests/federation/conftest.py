"""What pytest leaves out here: a module that Python loads by its name in the processes of one long test."""

collect_ignore = ["one_phase/sitecustomize.py"]
