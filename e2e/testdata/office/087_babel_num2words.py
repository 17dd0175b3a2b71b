# Numbers, dates and amounts as people in other countries write them.
from datetime import date
from decimal import Decimal
from babel.dates import format_date
from babel.numbers import format_currency, format_decimal
from num2words import num2words

print(format_decimal(1234567.891, locale="de_DE"), format_currency(Decimal("1099.9"), "USD", locale="en_US"))
print(format_date(date(2024, 7, 14), format="full", locale="en_US"), format_date(date(2024, 7, 14), format="long", locale="zh_CN"))
print(num2words(342), "/", num2words(21, lang="de"), "/", num2words(3, to="ordinal"))
