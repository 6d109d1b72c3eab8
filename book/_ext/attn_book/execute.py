"""Run the chapters beside one another, before Sphinx reads them one by one.

MyST-NB runs a chapter when Sphinx reads it, and waits. Here every chapter that Sphinx is about to
read and whose outputs are not yet kept is run first, as many at a time as there are cores, and put
into the jupyter-cache in which MyST-NB then looks. MyST-NB still has the last word: what it does
not find there, it runs itself.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import NamedTuple

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.readers import get_reader
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
from sphinx.errors import SphinxError
from sphinx.util import logging

logger = logging.getLogger(__name__)
READER = {"type": "plugin", "name": "myst_nb_md"}  # MyST-NB's own, as it is offered to the cache
MOST = 8  # kernels at a time: each holds a numpy, a sympy and a matplotlib
REPORT = 15  # seconds between two lines about chapters that take their time
# One thread a kernel: there is a kernel a core, and how many threads share a matrix product may
# change its last digit, hence a page.
THREADS = ("OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
OPTIONS = {
    "coalesce_streams": True,  # where a kernel cuts what it prints depends on its speed
    "record_timing": False,
    "extra_arguments": ["--IPKernelApp.log_level=ERROR"],  # it warns of TCP at every start
}


class ChapterError(SphinxError):
    """Chapters that do not run to their end."""

    category = "A chapter does not run"


class Chapter(NamedTuple):
    """A page with code cells whose outputs are not yet kept."""

    name: str
    path: Path
    notebook: NotebookNode


# --- what is to be run ----------------------------------------------------------------------------
def stale(cache, pages):
    """Return the chapters without kept outputs; the longest text first, which is a good enough
    guess at what takes longest.

    Parameters
    ----------
    cache : jupyter_cache.base.JupyterCacheAbstract
        Where outputs are kept.
    pages : dict of str to pathlib.Path
        Names and files of the pages that Sphinx is about to read.
    """
    read, chapters = get_reader(READER), []
    for name, path in pages.items():
        notebook = read(str(path))
        if "jupytext" in notebook.metadata and not kept(cache, notebook):
            chapters.append(Chapter(name, path, notebook))
    return sorted(chapters, key=lambda chapter: chapter.path.stat().st_size, reverse=True)


def kept(cache, notebook):
    """Return whether the cache holds the notebook's outputs; raise an error if half of them."""
    try:
        record = cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    cache.get_cache_bundle(record.pk)
    return True


def cores():
    """Return how many chapters are run at a time."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(usable or 1, MOST)


# --- running --------------------------------------------------------------------------------------
async def run(chapters, keep, timeout, at_once):
    """Run chapters; return what went wrong in each, by name.

    Parameters
    ----------
    chapters : list of Chapter
        In the order in which they are begun.
    keep : callable
        Is given each chapter that ran to its end, and its seconds.
    timeout : int
        Seconds that a cell may take.
    at_once : int
        How many chapters run at a time.
    """
    began, running, done, wrong = time.monotonic(), {}, [], {}
    turn = asyncio.Semaphore(at_once)

    def report(what):
        seconds = int(time.monotonic() - began)
        now = f"; running: {', '.join(running)}" if running else ""
        count = f"{len(done)} of {len(chapters)}"
        logger.info("%d:%02d  %s (%s)%s", *divmod(seconds, 60), what, count, now)

    async def one(chapter):
        async with turn:
            running[chapter.name] = start = time.monotonic()
            folder = {"metadata": {"path": str(chapter.path.parent)}}
            client = NotebookClient(chapter.notebook, timeout=timeout, resources=folder, **OPTIONS)
            try:
                await client.async_execute()
            except (CellExecutionError, CellTimeoutError) as error:
                wrong[chapter.name] = str(error).strip()
            except Exception as error:  # no kernel, no port, no memory: MyST-NB tries once more
                logger.info("%s: %s", chapter.name, error)
            else:
                keep(chapter, time.monotonic() - start)
            del running[chapter.name]
            done.append(chapter.name)
            took = time.monotonic() - start
            failed = chapter.name in wrong
            report(f"{'Failed' if failed else 'Executed'} {chapter.name} in {took:.0f} s")

    async def patience():
        while True:
            await asyncio.sleep(REPORT)
            report("Executing")

    waiting = asyncio.create_task(patience())
    await asyncio.gather(*(one(chapter) for chapter in chapters))
    waiting.cancel()
    return wrong


def execute_stale(app, env, names):
    """Run what Sphinx is about to read, and stop the build when a cell fails."""
    settings = env.mystnb_config
    if settings.execution_mode != "cache":
        return
    cache = get_cache(settings.execution_cache_path)
    pages = {name: Path(env.doc2path(name)) for name in names}
    try:
        chapters = stale(cache, pages)
    except (KeyError, ValueError, RuntimeError):  # a build was killed while it wrote there
        cache.clear_cache()
        chapters = stale(cache, pages)
    if not chapters:
        return

    def keep(chapter, seconds):
        # A lab's whole front end and random ids, for a script that is not used. (The executor
        # need not gather them, but without them it cannot show what an Output widget catches.)
        chapter.notebook.metadata.pop("widgets", None)
        data = {"execution_seconds": seconds}
        bundle = CacheBundleIn(chapter.notebook, str(chapter.path), data=data)
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)

    at_once = cores()
    count = f"{len(chapters)} chapter{'s' * (len(chapters) > 1)}"
    logger.info("Executing %s, %d at a time ...", count, at_once)
    wrong = asyncio.run(run(chapters, keep, settings.execution_timeout, at_once))
    if wrong:
        raise ChapterError("\n\n".join(f"{name}:\n{words}" for name, words in wrong.items()))


def setup(app):
    """Run chapters when Sphinx knows which pages it will read."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    app.connect("env-before-read-docs", execute_stale)
