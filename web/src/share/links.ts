import { useQuery } from '@tanstack/react-query'
import { base } from '../api/base'
import { type Caller, client, data, pages, type Schemas } from '../api/client'
import { queries } from '../api/queries'

export type Share = Schemas['Share']

/** What somebody opens to see what a link shows. */
export const sharedAddress = (code: string, root: URL = base) =>
  new URL(`shared/${encodeURIComponent(code)}`, root).href

/** What somebody opens to accept an invitation. A fragment is sent to no server. */
export const invitationAddress = (code: string, root: URL = base) =>
  new URL(`#invitation=${encodeURIComponent(code)}`, root).href

/** Whether the caller may make and withdraw links, as far as the page can know. */
export const mayShare = (who: Caller | undefined) =>
  !!who &&
  who.role !== 'viewer' &&
  who.role !== 'auditor' &&
  (!who.scopes || (who.scopes.includes('conversations:write') && who.scopes.includes('conversations:read')))

/** Whether the server shows conversations by links. */
export const useSharing = () =>
  useQuery({ queryKey: ['settings'], queryFn: () => data(client.GET('/settings')) }).data?.sharing ?? false

export const useShares = (enabled = true) =>
  useQuery({
    queryKey: ['shares'],
    enabled,
    queryFn: () =>
      pages<Share>((after) =>
        data(client.GET('/shares', { params: { query: { limit: 100, ...(after ? { after } : {}) } } })),
      ),
  })

export const refreshShares = () => queries.invalidateQueries({ queryKey: ['shares'] })
