"""Broken twins: modules of the library made anew, with something else in the place of what ships."""
