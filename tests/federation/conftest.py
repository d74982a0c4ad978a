"""What pytest leaves out here: modules that Python loads by their name in the processes of the long tests."""

collect_ignore = ["hostile_site/sitecustomize.py", "lying_site/sitecustomize.py", "one_phase/sitecustomize.py"]
