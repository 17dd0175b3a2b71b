"""Types that do not fit."""


def double(n: int) -> int:
    return n * 2


def name_of(n: int) -> str:
    if n > 0:
        return n  # fault: type-return-value
    return "none"


def first(values: list[int]) -> int | None:
    return values[0] if values else None


def use() -> float:
    total = double("a")  # fault: type-arg-type
    found = first([1, 2])
    return found + total  # fault: type-operator


def fine(values: dict[str, list[float]]) -> dict[str, float]:
    out = {}
    for key, numbers in values.items():
        out[key] = sum(numbers) / len(numbers)
    return out


data = [1, 2]
data = {"a": 1}
print(name_of(1), use(), fine({}), data)
