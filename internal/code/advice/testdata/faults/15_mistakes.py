"""Mistakes that do not show at once."""


def collect(value, into=[]):  # fault: B006
    into.append(value)
    return into


def collect_well(value, into=None):
    into = [] if into is None else into
    into.append(value)
    return into


def handlers():
    found = []
    for n in range(3):
        found.append(lambda: n)  # fault: B023
    return found


def is_small(n):
    return n is 1  # fault: F632


def check(values):
    assert (len(values) > 0, "there are no values")  # fault: F631
    try:
        return values[0]
    except:  # fault: E722
        return None


def compare(a, b):
    a == b  # fault: B015
    return a != None  # fault: E711


print(collect(1), collect_well(1), handlers(), is_small(1), check([1]), compare(1, 2))
