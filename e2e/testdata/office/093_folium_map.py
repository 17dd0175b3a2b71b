# A map with markers.
import folium
from folium.plugins import MarkerCluster

m = folium.Map(location=[48.8566, 2.3522], zoom_start=12)
cluster = MarkerCluster().add_to(m)
for name, lat, lon in (("Louvre", 48.8606, 2.3376), ("Tour Eiffel", 48.8584, 2.2945)):
    folium.Marker([lat, lon], popup=name, tooltip=name).add_to(cluster)
folium.Circle([48.85, 2.35], radius=500, color="red").add_to(m)
m.save("paris.html")
page = open("paris.html").read()
print(page.count("L.marker("), page.count("L.circle("), "Tour Eiffel" in page, m.get_bounds())
