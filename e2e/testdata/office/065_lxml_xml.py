# XML with name spaces: XPath, changes, validation.
from lxml import etree

xml = b"""<inv:invoice xmlns:inv="urn:inv"><inv:line qty="2" price="5.5"/><inv:line qty="1" price="9"/></inv:invoice>"""
root = etree.fromstring(xml)
ns = {"i": "urn:inv"}
print(sum(float(l.get("qty")) * float(l.get("price")) for l in root.xpath("//i:line", namespaces=ns)))
schema = etree.XMLSchema(etree.fromstring(b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="n" type="xs:integer"/></xs:schema>"""))
print(schema.validate(etree.fromstring("<n>5</n>")), schema.validate(etree.fromstring("<n>five</n>")))
style = etree.XSLT(etree.fromstring(b"""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/><xsl:template match="/"><xsl:value-of select="count(//line)"/> lines</xsl:template></xsl:stylesheet>"""))
print(str(style(etree.fromstring("<d><line/><line/></d>"))))
