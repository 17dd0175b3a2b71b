import { useMemo } from 'react'
import { drawn, isRemoved, type OwnChart, type Version } from '../chart/own'
import { executionLive, useLive } from '../events/live'
import { Code } from '../output'
import { PrintOutput } from './PrintOutput'
import { usePending } from './pending'
import css from './print.module.css'

function Drawn({ version, code }: { version: Version; code: boolean }) {
  const { execution, body } = version
  const running = execution.state === 'running' || execution.state === 'queued'
  const live = useMemo(() => executionLive(execution.id, running, execution.code), [execution, running])
  useLive(live)
  usePending(!running && !live.loaded && !live.view.done && live.link.link !== 'failed')
  return (
    <div className={css.step}>
      {code && <Code text={body} language="python" />}
      <PrintOutput items={live.view.items} texts={code} />
    </div>
  )
}

/** A chart that a person made, as it was drawn last. */
export function PrintOwnChart({ chart, code }: { chart: OwnChart; code: boolean }) {
  const last = isRemoved(chart) ? undefined : drawn(chart).at(-1)
  return last ? <Drawn version={last} code={code} /> : null
}
