"""What features are prepared with, found without bringing rows together: means, deviations, quantiles, categories.

A **plan** (`_plans`) is a generator of **questions** (`_questions`). Whoever has rows answers each question of its own
ones; the answers of all are combined, and the plan goes on with what they come to. One process asks itself, the
processes of an MPI program ask each other, and a server asks the sites of a federation. Sums are exact (`_exact`), so
that the numbers in the end do not depend on who had which rows: they are those of one process, to the last bit.
"""

from dualopt.problem.preprocessing._columns import (
    INDICATORS,
    MISSING,
    REFUSE,
    Columns,
    Table,
    TableOptions,
    fitted_columns,
    plan_of_columns,
    united,
)
from dualopt.problem.preprocessing._plans import Found, Plan, answered, plan_of_numbers
from dualopt.problem.preprocessing._questions import Numbers, Question, asked_of_peers, combined, require_sound

__all__ = [
    "INDICATORS",
    "MISSING",
    "REFUSE",
    "Columns",
    "Found",
    "Numbers",
    "Plan",
    "Question",
    "Table",
    "TableOptions",
    "answered",
    "asked_of_peers",
    "combined",
    "fitted_columns",
    "plan_of_columns",
    "plan_of_numbers",
    "require_sound",
    "united",
]
