"""The frame of one evaluation: a list of the subject, the budget, the steps left and a slot for each name."""

SUBJECT = 0
BUDGET = 1
WORK = 2
FIRST_SLOT = 3
