/** A scrape of `/metrics`, read as a collector would. */
export type Scrape = {
  /** Every metric that is told, whether it has values or not. */
  names: Set<string>
  /** The value of one series; undefined where there is none. Labels may be left out. */
  value(name: string, labels?: Record<string, string>): number | undefined
  /** All label values that were met, by label. */
  labels: Map<string, Set<string>>
}

const SERIES = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i
const LABEL = /([a-z_]\w*)="((?:[^"\\]|\\.)*)"/gi

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`)
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return readScrape(await response.text())
}

export function readScrape(text: string): Scrape {
  const names = new Set<string>()
  const labels = new Map<string, Set<string>>()
  const series: { name: string; labels: Record<string, string>; value: number }[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('# TYPE ')) names.add(line.split(' ')[2] ?? '')
    const [, name, given = '', value] = SERIES.exec(line) ?? []
    if (name === undefined) continue
    const own: Record<string, string> = {}
    for (const [, label = '', said = ''] of given.matchAll(LABEL)) {
      own[label] = said
      labels.set(label, (labels.get(label) ?? new Set()).add(said))
    }
    series.push({ name, labels: own, value: Number(value) })
  }
  return {
    names,
    labels,
    value(name, wanted = {}) {
      const found = series.filter(
        (one) =>
          one.name === name &&
          Object.entries(wanted).every(([label, said]) => one.labels[label] === said),
      )
      return found.length === 0 ? undefined : found.reduce((sum, one) => sum + one.value, 0)
    },
  }
}
