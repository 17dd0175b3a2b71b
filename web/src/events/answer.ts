import { useMemo } from 'react'
import { client, data } from '../api/client'
import { useMe } from '../api/queries'
import { may } from '../pages/admin/rights'

/** What gives an execution the line that its code waits for, or the end of its input. Null where there is none, or this account may give it none. */
export function useAnswer(execution: string | undefined) {
  const me = useMe(!!execution).data // a shared page has no account to ask about, and nothing that runs
  const allowed = !!me && may(me, 'sessions:execute')
  return useMemo(
    () =>
      execution && allowed
        ? (number: number, body: { text: string } | { end: true }): Promise<unknown> =>
            data(
              client.POST('/executions/{execution}/inputs/{number}', { params: { path: { execution, number } }, body }),
            )
        : null,
    [execution, allowed],
  )
}
