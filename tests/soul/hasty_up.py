"""`soul up` as a child of a test, which restarts at once what fails.

usage: python -m tests.soul.hasty_up DIR…
"""

import sys
from pathlib import Path

from soul.supervisor import run_up

if __name__ == "__main__":
    sys.exit(run_up([Path(one) for one in sys.argv[1:]], social_only=False, port=0, restart_s=0))
