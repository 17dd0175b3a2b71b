# A Venn diagram and a tree map.
import matplotlib.pyplot as plt
import squarify
from matplotlib_venn import venn2

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
venn = venn2([{1, 2, 3}, {3, 4}], set_labels=("A", "B"), ax=left)
print([venn.get_label_by_id(i).get_text() for i in ("10", "01", "11")])
squarify.plot(sizes=[6, 3, 1], label=["a", "b", "c"], ax=right)
print(len(right.patches), round(sum(p.get_width() * p.get_height() for p in right.patches)))
fig.savefig("both.png")
plt.close(fig)
