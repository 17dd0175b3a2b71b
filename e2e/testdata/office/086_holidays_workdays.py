# Working days between two dates with public holidays.
import datetime
import holidays
import numpy as np

germany = holidays.country_holidays("DE", subdiv="BY", years=2024, language="de")
print(germany.get(datetime.date(2024, 10, 3)), datetime.date(2024, 11, 1) in germany)
days = np.array(sorted(germany), dtype="datetime64[D]")
# May 2024 has 23 weekdays; 1, 9, 20 and 30 May are holidays in Bavaria.
print(np.busday_count("2024-05-01", "2024-06-01", holidays=days))
us = holidays.country_holidays("US", years=2024)
print([str(d) for d, n in us.items() if n == "Thanksgiving Day"])
