"""What pytest leaves out here: modules that Python loads by their name in the processes of the long tests."""

collect_ignore_glob = ["*/sitecustomize.py"]
