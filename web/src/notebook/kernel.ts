import type { Session } from '../api/client'
import { client, data } from '../api/client'
import { queries } from '../api/queries'
import type { Kernel } from './typing'

/** The first kernel of a session. */
export function kernelOf(session: string): Kernel {
  const params = { path: { session, kernel: 'main' } }
  return {
    awake: () => queries.getQueryData<Session>(['session', session])?.state === 'active',
    complete: (code, cursor, signal) =>
      data(client.POST('/sessions/{session}/kernels/{kernel}/complete', { params, body: { code, cursor }, signal })),
    describe: async (code, cursor) =>
      (await data(client.POST('/sessions/{session}/kernels/{kernel}/describe', { params, body: { code, cursor } })))
        .text,
  }
}
