# Clean a list of telephone numbers.
import phonenumbers
from phonenumbers import geocoder

for text, region in (("030 303 986 300", "DE"), ("(415) 555-2671", "US"), ("138 0013 8000", "CN"), ("12", "FR")):
    number = phonenumbers.parse(text, region)
    if phonenumbers.is_possible_number(number):
        print(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164), geocoder.country_name_for_number(number, "en"))
    else:
        print("not a number:", text)
