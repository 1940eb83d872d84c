"""Scenarios in few bytes: whole numbers, columns, tables, texts, and the scenario around them."""
