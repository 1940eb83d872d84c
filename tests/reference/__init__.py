"""Independent answers: recorded cases, and the formulas in plain loops."""
