# Seaborn charts into a Word report.
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from docx import Document
from docx.shared import Cm

df = pd.DataFrame({"team": list("AABB"), "score": [1, 3, 5, 9]})
sns.set_theme(style="whitegrid")
ax = sns.barplot(df, x="team", y="score", errorbar=None)
print([float(p.get_height()) for p in ax.patches])
plt.savefig("team.png", dpi=120, bbox_inches="tight")
plt.close()
doc = Document()
doc.add_heading("Teams", 0)
doc.add_picture("team.png", width=Cm(12))
doc.save("teams.docx")
print(round(Document("teams.docx").inline_shapes[0].width.cm, 1))
