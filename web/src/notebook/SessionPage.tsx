import { useCallback } from 'react'
import { refresh, useSession } from '../api/queries'
import { putFile } from '../api/upload'
import { Charting } from '../chart/Charting'
import { DropZone } from '../composer/DropZone'
import { Panels } from '../panels/Panels'
import { complain } from '../parts'
import { Page } from '../shell/Page'
import { useWords } from '../words'
import Notebook from './Notebook'

export default function SessionPage({ id }: { id: string }) {
  const w = useWords()
  const session = useSession(id)
  const drop = useCallback(
    async (files: File[]) => {
      try {
        for (const file of files) await putFile(id, file.name, file).done
      } catch (error) {
        complain(error)
      }
      refresh({ session: id })
    },
    [id],
  )
  return (
    <Charting session={id}>
      <Page title={session.data?.name || w.notebook.title} panels={<Panels session={id} />}>
        <Notebook session={id} />
        <DropZone scope={id} onFiles={drop} />
      </Page>
    </Charting>
  )
}
