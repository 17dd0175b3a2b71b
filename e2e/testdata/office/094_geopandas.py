# Points in regions, areas, a GeoPackage and a picture of the map.
import geopandas as gpd
import matplotlib.pyplot as plt
from shapely.geometry import Point, box

regions = gpd.GeoDataFrame({"name": ["west", "east"]}, geometry=[box(0, 0, 1000, 1000), box(1000, 0, 3000, 1000)], crs="EPSG:32633")
points = gpd.GeoDataFrame({"id": [1, 2, 3]}, geometry=[Point(10, 10), Point(1500, 5), Point(2999, 999)], crs="EPSG:32633")
joined = gpd.sjoin(points, regions, predicate="within")
print(joined.groupby("name")["id"].count().to_dict(), (regions.area / 1e6).tolist())
regions.to_file("r.gpkg", layer="regions")
regions.to_file("r.geojson", driver="GeoJSON")
print(gpd.read_file("r.gpkg").shape, gpd.read_file("r.geojson").crs.to_epsg())
regions.plot(column="name", legend=True)
plt.savefig("map.png")
plt.close()
print(round(gpd.GeoSeries([Point(15, 0)], crs=4326).to_crs(32633).iloc[0].x))
