# A calendar with a meeting each week, and its dates.
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo
from dateutil.rrule import rrulestr
from icalendar import Calendar, Event

berlin = ZoneInfo("Europe/Berlin")
cal = Calendar()
cal.add("prodid", "-//demo//")
cal.add("version", "2.0")
event = Event()
event.add("summary", "Standup; täglich")
event.add("dtstart", datetime(2024, 3, 25, 9, 0, tzinfo=berlin))
event.add("dtend", datetime(2024, 3, 25, 9, 15, tzinfo=berlin))
event.add("rrule", {"freq": "weekly", "count": 3})
event.add("uid", "1@demo")
cal.add_component(event)
open("cal.ics", "wb").write(cal.to_ical())

back = Calendar.from_ical(open("cal.ics", "rb").read())
ev = back.walk("VEVENT")[0]
start = ev.decoded("dtstart")
print(str(ev["summary"]), ev.decoded("dtend") - start)
rule = rrulestr(ev["rrule"].to_ical().decode(), dtstart=start)
# Summer time begins on 31 March: nine o'clock stays nine o'clock.
print([d.strftime("%d.%m. %H:%M %z") for d in rule])
