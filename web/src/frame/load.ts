const here = (document.currentScript as HTMLScriptElement | null)?.src ?? document.baseURI
const loading = new Map<string, Promise<void>>()

/** Loads one of the bundles beside this script. */
export function load(name: 'plotly-cartesian' | 'plotly-strict' | 'vega' | 'widgets'): Promise<void> {
  const known = loading.get(name)
  if (known) return known
  const now = new Promise<void>((done, fail) => {
    const script = document.createElement('script')
    script.src = new URL(`${name}.js`, here).href
    script.onload = () => done()
    script.onerror = () => fail(new Error(`${name}.js did not load`))
    document.head.append(script)
  })
  loading.set(name, now)
  return now
}
