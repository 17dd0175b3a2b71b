const quote = (cell: string) => (/[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

const toCsv = (rows: string[][]) => `${rows.map((row) => row.map(quote).join(',')).join('\n')}\n`

/** A table that was copied from a spreadsheet or a page, as CSV, or null when it is no table. */
export function pastedTable(clip: { html: string; text: string }): { csv: string; rows: number } | null {
  if (/<table/i.test(clip.html)) {
    const page = new DOMParser().parseFromString(clip.html, 'text/html')
    const rows = [...page.querySelectorAll('table tr')].map((tr) =>
      [...tr.querySelectorAll('th,td')].map((c) => (c.textContent ?? '').trim()),
    )
    const table = rows.filter((r) => r.length > 0)
    if (table.length > 1 && (table[0]?.length ?? 0) > 1) return { csv: toCsv(table), rows: table.length }
  }
  const lines = clip.text.replace(/\r\n?/g, '\n').replace(/\n+$/, '').split('\n')
  if (lines.length < 2) return null
  const rows = lines.map((line) => line.split('\t'))
  const width = rows[0]?.length ?? 0
  if (width < 2 || rows.some((r) => r.length !== width)) return null
  return { csv: toCsv(rows), rows: rows.length }
}
