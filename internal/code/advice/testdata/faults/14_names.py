"""Names that are not there, or not used."""
import json
import os  # fault: F401
from math import sqrt


def area(r):
    return pi * r * r  # fault: F821


def unused(values):
    largest = max(values)  # fault: F841
    return len(values)


def shadow(values):
    total = 0
    for value in values:
        total += value
    return totl  # fault: F821


print(area(2), unused([1]), shadow([1]), sqrt(2), json.dumps({}))
