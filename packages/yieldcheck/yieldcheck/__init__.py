"""An explicit-state checker for programs that are written as generators.

A program yields requests and is sent replies; everything that it does to the world goes through them. So the program that is
shipped is the program that is checked: the search plays every answer that the world may give, in every interleaving.
"""

from .processes import Answer, Processes
from .search import MOST_STATES, Model, Move, Report, check, path_through
from .situations import ImpureProgramError, Program, Situation, Situations

__version__ = "0.1.0"

__all__ = [
    "MOST_STATES",
    "Answer",
    "ImpureProgramError",
    "Model",
    "Move",
    "Processes",
    "Program",
    "Report",
    "Situation",
    "Situations",
    "check",
    "path_through",
]
