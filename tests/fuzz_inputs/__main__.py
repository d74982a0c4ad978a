"""``python -m tests.fuzz_inputs`` checks bad input in depth."""

import sys

from tests.fuzz_inputs import main

if __name__ == "__main__":
    sys.exit(main())
