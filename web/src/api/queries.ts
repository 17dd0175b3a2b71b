import { QueryClient, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { type Conversation, client, data, pages, type Turn } from './client'
import { Problem } from './problem'

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (times, error) => times < 3 && error instanceof Problem && error.passing,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

export const useModels = () =>
  useQuery({ queryKey: ['models'], queryFn: async () => (await data(client.GET('/models'))).items, staleTime: 60_000 })

export const useMe = (wanted = true) =>
  useQuery({
    queryKey: ['me'],
    staleTime: Number.POSITIVE_INFINITY,
    enabled: wanted,
    queryFn: () => data(client.GET('/me')),
  })

export const useConversations = () =>
  useInfiniteQuery({
    queryKey: ['conversations'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      data(
        client.GET('/conversations', { params: { query: { limit: 40, ...(pageParam ? { after: pageParam } : {}) } } }),
      ),
    getNextPageParam: (page) => page.next,
  })

export const conversationQuery = (id: string) => ({
  queryKey: ['conversation', id],
  queryFn: () => data(client.GET('/conversations/{conversation}', { params: { path: { conversation: id } } })),
})

export const useConversation = (id: string) => useQuery(conversationQuery(id))

export const useTurns = (id: string) =>
  useQuery({
    queryKey: ['turns', id],
    // The stream tells of changes; this is for a server on whose database others write too, and for a stream that is away.
    refetchInterval: ({ state }) => (state.data?.some((t) => t.state === 'running') ? 5000 : false),
    queryFn: () =>
      pages<Turn>((after) =>
        data(
          client.GET('/conversations/{conversation}/turns', {
            params: { path: { conversation: id }, query: { limit: 100, ...(after ? { after } : {}) } },
          }),
        ),
      ),
  })

export const useQueue = (id: string) =>
  useQuery({
    queryKey: ['queue', id],
    refetchInterval: ({ state }) => (state.data?.length ? 5000 : false), // as with turns
    queryFn: async () =>
      (await data(client.GET('/conversations/{conversation}/queue', { params: { path: { conversation: id } } }))).items,
  })

export const useSession = (id: string | undefined) =>
  useQuery({
    queryKey: ['session', id],
    enabled: !!id,
    queryFn: () => data(client.GET('/sessions/{session}', { params: { path: { session: id ?? '' } } })),
  })

/** Puts a turn into what is known of its conversation. */
export function keepTurn(turn: Turn) {
  queries.setQueryData<Turn[]>(['turns', turn.conversation], (known) => {
    if (!known) return [turn]
    return known.some((t) => t.id === turn.id) ? known.map((t) => (t.id === turn.id ? turn : t)) : [...known, turn]
  })
}

/** Reads anew what a turn or an execution may have changed. */
export function refresh(what: { conversation?: string; session?: string }) {
  void queries.invalidateQueries({ queryKey: ['conversations'] })
  if (what.conversation) {
    void queries.invalidateQueries({ queryKey: ['turns', what.conversation] })
    void queries.invalidateQueries({ queryKey: ['conversation', what.conversation] })
  }
  if (what.session) {
    for (const part of ['session', 'files', 'packages', 'points', 'executions', 'variables', 'kernels'])
      void queries.invalidateQueries({ queryKey: [part, what.session] })
  }
}

export const titleOf = (c: Pick<Conversation, 'title'> | undefined, untitled: string) => c?.title?.trim() || untitled
