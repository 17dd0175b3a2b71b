# An e-book with two chapters.
import ebooklib
from bs4 import BeautifulSoup
from ebooklib import epub

book = epub.EpubBook()
book.set_identifier("id1")
book.set_title("Stories")
book.set_language("en")
chapters = []
for i in (1, 2):
    c = epub.EpubHtml(title=f"Chapter {i}", file_name=f"c{i}.xhtml")
    c.content = f"<h1>Chapter {i}</h1><p>Text {i}.</p>"
    book.add_item(c)
    chapters.append(c)
book.toc = chapters
book.add_item(epub.EpubNcx())
book.add_item(epub.EpubNav())
book.spine = ["nav", *chapters]
epub.write_epub("book.epub", book)
back = epub.read_epub("book.epub")
print(back.get_metadata("DC", "title")[0][0])
print([BeautifulSoup(d.get_content(), "html.parser").p.text for d in back.get_items_of_type(ebooklib.ITEM_DOCUMENT) if d.get_name().startswith("c")])
