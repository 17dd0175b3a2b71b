import { api } from '../api/base'
import { send } from '../api/client'
import { saveBlob } from '../pages/admin/save'

export const formats = ['ipynb', 'markdown', 'html', 'python'] as const
export type Format = (typeof formats)[number]

const endings: Record<Format, string> = { ipynb: 'ipynb', markdown: 'md', html: 'html', python: 'py' }

/** The name that an answer gives its file. */
export function nameIn(disposition: string | null, otherwise: string): string {
  const utf8 = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? '')?.[1]
  if (utf8)
    try {
      return decodeURIComponent(utf8)
    } catch {
      // Not what it says it is: the plain name is taken.
    }
  return /filename="([^"]+)"/i.exec(disposition ?? '')?.[1] ?? otherwise
}

/** Saves a branch as a file. It is fetched first, so that what goes wrong is said in words and not in a file. */
export async function exportBranch(conversation: string, turn: string, format: Format) {
  const query = new URLSearchParams({ format, turn })
  const answer = await send(api(`conversations/${conversation}/export?${query}`))
  saveBlob(nameIn(answer.headers.get('Content-Disposition'), `conversation.${endings[format]}`), await answer.blob())
}
