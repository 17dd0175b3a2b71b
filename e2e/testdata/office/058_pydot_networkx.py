# A tree laid out by Graphviz and drawn with matplotlib.
import matplotlib.pyplot as plt
import networkx as nx
from networkx.drawing.nx_pydot import graphviz_layout, to_pydot

G = nx.balanced_tree(2, 2, create_using=nx.DiGraph)
pos = graphviz_layout(G, prog="dot")
levels = sorted({round(y) for _, y in pos.values()}, reverse=True)
print(len(pos), len(levels), round(pos[0][1]) == levels[0])
nx.draw(G, pos, with_labels=True, node_color="lightblue")
plt.savefig("tree.png")
plt.close()
to_pydot(G).write_png("pydot.png")
print(open("pydot.png", "rb").read(4) == b"\x89PNG")
