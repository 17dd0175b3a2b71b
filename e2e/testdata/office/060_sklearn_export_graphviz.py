# A decision tree drawn by Graphviz.
import graphviz
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, export_graphviz

iris = load_iris()
tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(iris.data, iris.target)
source = export_graphviz(tree, feature_names=iris.feature_names, class_names=iris.target_names, filled=True)
path = graphviz.Source(source, format="svg").render("tree")
svg = open(path).read()
print(path, svg.count('class="node"'), "samples = 150" in svg, "samples = 50<" in svg)
