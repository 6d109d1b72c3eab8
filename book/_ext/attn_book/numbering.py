"""Number theorems, exercises, figures and formulas by chapter: Theorem 4.2 stands in chapter 4.

Sphinx numbers by the sections of a table of contents that is numbered itself, and would then put
"4.", "4.1." before every title. Here a chapter is numbered in its title, so that a page read alone
says which chapter it is; pages below it go on counting.
"""

import functools
import re

from sphinx.environment.collectors.toctree import TocTreeCollector

CHAPTER = re.compile(r"(\d+)\. ")


def chapters(env):
    """Return the number of each chapter by its page, in the form of Sphinx's section numbers."""
    found = {name: CHAPTER.match(title.astext()) for name, title in env.titles.items()}
    return {name: {"": (int(number[1]),)} for name, number in found.items() if number}


def by_chapter(assign):
    """Let what counts figures see chapters as numbered sections, and nobody else."""

    @functools.wraps(assign)
    def assigned(self, env):
        kept, env.toc_secnumbers = env.toc_secnumbers, chapters(env)
        try:
            return assign(self, env)
        finally:
            env.toc_secnumbers = kept

    return assigned


def setup(app):
    """Put the chapters before the counting, once in a process."""
    if not hasattr(TocTreeCollector.assign_figure_numbers, "__wrapped__"):
        TocTreeCollector.assign_figure_numbers = by_chapter(TocTreeCollector.assign_figure_numbers)
