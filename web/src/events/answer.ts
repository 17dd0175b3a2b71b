import { client, data } from '../api/client'

/** What gives an execution the line that its code waits for, or the end of its input. */
export const answering =
  (execution: string) =>
  (number: number, body: { text: string } | { end: true }): Promise<unknown> =>
    data(client.POST('/executions/{execution}/inputs/{number}', { params: { path: { execution, number } }, body }))
