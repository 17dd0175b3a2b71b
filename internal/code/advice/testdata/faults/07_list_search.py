"""Membership in lists and sets."""
import sys

known = sys.stdin.read().split()
words = open("words.txt").readlines()
hits = 0
for line in words:
    if line.strip() in known:  # nothing is known of the text of a file
        hits += 1

banned = [w.lower() for w in words]
clean = [w for w in words if w not in banned]  # fault: slow-list-search

allowed = list(map(str, range(5000)))
for word in words:
    if word in allowed:  # fault: slow-list-search
        hits += 1

colours = ["red", "green", "blue"]
for word in words:
    if word in colours:
        hits += 1

fast = set(words)
for word in words:
    if word in fast:
        hits += 1

seen = []
for word in words:
    if word not in seen:  # fault: slow-list-grown
        seen.append(word)
print(hits, clean, seen, "x" in allowed)
