"""Texts that grow in loops."""


class Report:
    def __init__(self):
        self.text = ""
        self.lines = []
        self.size = 0

    def add(self, rows):
        for row in rows:
            self.text += str(row) + "\n"  # fault: slow-string-building
            self.lines.append(str(row))
            self.size += 1


def reverse(text: str) -> str:
    out = ""
    for c in text:
        out = c + out  # fault: slow-string-building
    return out


def table(rows):
    page = ""
    for row in rows:
        page = page + str(row) + ";"  # fault: slow-string-building
    return page


def plain(rows):
    page = ""
    for row in rows:
        page += str(row)
    for row in rows:
        line = "row "
        line = line + str(row) + "!"
        page += line
    total = 0
    for row in rows:
        total = row + total
    return page, total
