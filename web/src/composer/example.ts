/** A small sales file, made here: three years of months, four regions, three products. The same numbers each time. */
export function exampleFile(lang: string): File {
  const zh = lang.startsWith('zh')
  const regions: [string, number, number][] = zh
    ? [
        ['北部', 105, 1.09],
        ['南部', 82, 1.18],
        ['东部', 78, 0.96],
        ['海外', 50, 1.56],
      ]
    : [
        ['North', 105, 1.09],
        ['South', 82, 1.18],
        ['East', 78, 0.96],
        ['Overseas', 50, 1.56],
      ]
  const products: [string, number][] = zh
    ? [
        ['桌子', 1.4],
        ['椅子', 1],
        ['灯', 0.6],
      ]
    : [
        ['Desk', 1.4],
        ['Chair', 1],
        ['Lamp', 0.6],
      ]
  const lines = ['date,region,product,units,revenue']
  let seed = 7
  const random = () => {
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
  }
  for (let month = 0; month < 36; month++) {
    const year = 2023 + Math.floor(month / 12)
    const m = (month % 12) + 1
    for (const [region, start, growth] of regions) {
      for (const [product, weight] of products) {
        const season = 1 + 0.22 * Math.sin(((m - 3) / 12) * 2 * Math.PI)
        const units = Math.round(start * weight * growth ** (month / 12) * season * (0.9 + random() * 0.2))
        lines.push(
          `${year}-${String(m).padStart(2, '0')}-01,${region},${product},${units},${units * Math.round(28 * weight)}`,
        )
      }
    }
  }
  return new File([`${lines.join('\n')}\n`], 'sales.csv', { type: 'text/csv' })
}
