// HTML of an output, without scripts or with them. The frame has an origin of its own and a policy that loads nothing.

const refused = 'script, iframe, frame, object, embed, base, link, meta, form, portal, fencedframe, template'

/** HTML of a description or the like, among what is shown already. */
export const inlineHtml = (root: HTMLElement, html: string) => showHtml(root, html, false)

export function showHtml(root: HTMLElement, html: string, scripts: boolean) {
  const parsed = new DOMParser().parseFromString(html, 'text/html')
  const wanted = scripts ? 'iframe, frame, object, embed, base, link, meta, portal, fencedframe' : refused
  for (const el of parsed.querySelectorAll(wanted)) el.remove()
  if (!scripts) {
    for (const el of parsed.querySelectorAll('*')) {
      for (const name of el.getAttributeNames()) {
        if (/^on|^ping$|^srcdoc$|^formaction$|^action$/i.test(name)) el.removeAttribute(name)
      }
    }
  }
  const styles = [...parsed.head.querySelectorAll('style, script')]
  const nodes = [...styles, ...parsed.body.childNodes].map((n) => document.importNode(n, true))
  root.replaceChildren(...nodes)
  if (!scripts) return
  // Scripts that were parsed elsewhere do not run: each is made anew, in order.
  for (const old of root.querySelectorAll('script')) {
    const script = document.createElement('script')
    for (const { name, value } of old.attributes) script.setAttribute(name, value)
    script.textContent = old.textContent
    old.replaceWith(script)
  }
}
