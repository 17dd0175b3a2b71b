# A CAD drawing with two layers.
import ezdxf

doc = ezdxf.new("R2010", setup=True)
doc.layers.add("WALLS", color=1)
space = doc.modelspace()
space.add_lwpolyline([(0, 0), (4, 0), (4, 3), (0, 3)], close=True, dxfattribs={"layer": "WALLS"})
space.add_circle((2, 1.5), radius=0.5)
doc.saveas("plan.dxf")
back = ezdxf.readfile("plan.dxf").modelspace()
walls = back.query('LWPOLYLINE[layer=="WALLS"]').first
points = [(x, y) for x, y, *_ in walls.get_points()]
area = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1]))) / 2
print(len(back), area, back.query("CIRCLE").first.dxf.radius)
