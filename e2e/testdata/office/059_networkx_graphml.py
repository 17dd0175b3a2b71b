# Communities, shortest path, GraphML.
import networkx as nx

G = nx.Graph()
G.add_weighted_edges_from([("A", "B", 4), ("A", "C", 1), ("C", "B", 2), ("B", "D", 5), ("C", "D", 8)])
print(nx.shortest_path(G, "A", "D", weight="weight"), nx.shortest_path_length(G, "A", "D", weight="weight"))
nx.write_graphml(G, "g.graphml")
H = nx.read_graphml("g.graphml")
print(H.number_of_nodes(), H["A"]["B"]["weight"], sorted(nx.minimum_spanning_tree(H).edges(data="weight"), key=lambda e: e[2])[0][2])
