import { Redirect, Route, Switch } from 'wouter'
import type { Caller } from '../../api/client'
import { Sheet } from '../../shell/Page'
import { useWords } from '../../words'
import { AllSessions } from './AllSessions'
import { Audit } from './Audit'
import { Keys } from './Keys'
import { Project } from './Project'
import { Projects } from './Projects'
import { mayOpen, type Section, sections, shownTo } from './rights'
import { Models, Server } from './Server'
import { Usage } from './Usage'
import { Users } from './Users'

const views = {
  projects: Projects,
  users: Users,
  keys: Keys,
  usage: Usage,
  audit: Audit,
  sessions: AllSessions,
  models: Models,
  server: Server,
}

function NotFor() {
  const w = useWords()
  return (
    <Sheet title={w.admin.title} text={w.admin.notFor}>
      <p>{w.admin.notForHint}</p>
    </Sheet>
  )
}

/** The pages below /admin, each for whom its role allows it. */
export default function Admin({ who }: { who: Caller }) {
  const first = mayOpen(who, 'usage') ? 'usage' : shownTo(who, true)[0]
  return (
    <Switch>
      <Route path="/admin/projects/:id">
        {({ id }) => (mayOpen(who, 'projects') ? <Project key={id} who={who} id={id} /> : <NotFor />)}
      </Route>
      <Route path="/admin/:section">
        {({ section }) => {
          if (!sections.includes(section as Section)) return <Redirect to={`/admin/${first}`} replace />
          const View = views[section as Section]
          return mayOpen(who, section as Section) ? <View who={who} /> : <NotFor />
        }}
      </Route>
      <Route>
        <Redirect to={`/admin/${first}`} replace />
      </Route>
    </Switch>
  )
}
