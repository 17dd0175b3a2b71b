// Where the app is mounted. A proxy may serve it under a sub-path, and its own addresses may be deep: so the part that is the app's own is taken off.
const own = /^(.*?\/)(?:c|s|sessions|settings|usage|keys|search|admin|shared)(?:\/.*)?$/

export function baseOf(address: string): URL {
  const url = new URL(address)
  url.hash = ''
  url.search = ''
  const match = own.exec(url.pathname)
  url.pathname = match?.[1] ?? url.pathname.replace(/[^/]*$/, '')
  return url
}

// The server says how far up the root is from the address that was asked for; the development server does not.
const stated = document.querySelector<HTMLMetaElement>('meta[name="page-base"]')?.content

/** The app's address, with a slash at the end. */
export const base = stated ? new URL(stated, document.baseURI) : baseOf(document.baseURI)

/** The address of a part of the API. */
export const api = (path: string) => new URL(`api/v1/${path.replace(/^\//, '')}`, base).href

/** What wouter takes as base: the path without the slash at its end. */
export const routerBase = base.pathname.replace(/\/$/, '')

/** A path of the workspace, as a part of an address. */
export const pathOf = (path: string) => path.split('/').map(encodeURIComponent).join('/')

export const fileAddress = (session: string, path: string) => api(`sessions/${session}/files/${pathOf(path)}`)
