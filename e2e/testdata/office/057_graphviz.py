# A flow chart with Graphviz.
import graphviz
from PIL import Image

dot = graphviz.Digraph("flow", format="png")
dot.attr(rankdir="LR", dpi="96")
dot.node("a", "开始", shape="box")
dot.node("b", "检查")
dot.node("c", "End", shape="doublecircle")
dot.edges(["ab", "bc"])
path = dot.render("flow", cleanup=True)
print(path, Image.open(path).format, Image.open(path).width > Image.open(path).height)
svg = dot.pipe(format="svg").decode()
print(svg.count('class="node"'), svg.count('class="edge"'), "开始" in svg)
plain = graphviz.Source("digraph { x -> y }").pipe(format="plain").decode().split()
print(plain[0], "edge" in plain)
