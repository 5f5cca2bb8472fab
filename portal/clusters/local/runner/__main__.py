"""`python -I -S <this file> <pod folder>`: run the pod that the folder describes."""

import os
import sys

if __name__ == "__main__":
    # Isolated mode knows no search path of the portal; the packages above import nothing by themselves.
    sys.path.insert(0, os.path.abspath(__file__ + "/../../../../.."))

    from portal.clusters.local.runner.pod import main

    sys.exit(main(sys.argv[1]))
