"""Progress bars are for those who wait: a reader sees them move, a page would keep their traces.

tqdm reads its defaults from the environment, and the kernels of a build inherit it.
"""

import os


def setup(app):
    """Tell every tqdm of this build, unless somebody has told it otherwise."""
    os.environ.setdefault("TQDM_DISABLE", "1")
