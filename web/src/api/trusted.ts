// The only place that makes what browsers trust: text for a parser of HTML, whose document is inert (nothing in it runs
// or loads, and none of its nodes are put into the page), and the address of the page's own worker.

interface Policy {
  createHTML: (text: string) => unknown
  createScriptURL: (address: string) => unknown
}
interface Factory {
  createPolicy: (
    name: string,
    rules: { createHTML: (text: string) => string; createScriptURL: (address: string) => string },
  ) => Policy
}

let policy: Policy | null = null

function theirs(): Policy | null {
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes
  if (!factory) return null
  policy ??= factory.createPolicy('cove', {
    createHTML: (t) => t,
    createScriptURL: (address) => {
      if (new URL(address, location.href).origin !== location.origin) throw new Error('not of this server')
      return address
    },
  })
  return policy
}

const trust = (text: string) => (theirs()?.createHTML(text) ?? text) as string

/** The address of one of the page's own scripts. */
export const ownScript = (address: string) => (theirs()?.createScriptURL(address) ?? address) as string

/** Styles are left out before: even an inert document has them reported as violations of the page's policy. */
export function parseInert(html: string): Document {
  const bare = html
    .replace(/<style\b[^>]*>[\s\S]*?(<\/style\s*>|$)/gi, '')
    .replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/\sstyle\s*=\s*("[^"]*"|'[^']*'|[^\s>]*)/gi, ''))
  return new DOMParser().parseFromString(trust(bare), 'text/html')
}
