"""Parts that the measuring and testing programs under `tests` share: a peer, its API, a toy web, an
nginx, documents with measured blocks.

A program finds the kit by the folder that both are in. This line of its `run` is the only one that
touches the path; modules beside `run` are found without:

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
"""

import pathlib

# The repository.
ROOT = pathlib.Path(__file__).resolve().parents[2]
