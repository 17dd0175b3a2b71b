import { QueryClientProvider } from '@tanstack/react-query'
import { lazy, StrictMode, Suspense, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import { Route, Router, Switch } from 'wouter'
import './tokens.css'
import './base.css'
import { base, routerBase } from './api/base'
import { queries } from './api/queries'
import { Fault } from './shell/Fault'
import { preferences, usePreferences } from './shell/preferences'
import { Shell } from './shell/Shell'
import { Gate } from './signin/Gate'
import { languageOf, wordsOf } from './words'
import { loadProblems } from './words/problems'

const SharedPage = lazy(() => import('./share/SharedPage'))

// What libraries put into a style element of their own is let through by this, as react-aria's is.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content
if (nonce) Object.assign(globalThis, { __webpack_nonce__: nonce })

function dress() {
  const { language, theme, contrast } = preferences()
  document.documentElement.lang = wordsOf(language).lang
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  if (contrast === 'high') document.documentElement.dataset.contrast = 'high'
  else delete document.documentElement.dataset.contrast
}

function App() {
  const { language, theme, contrast } = usePreferences()
  // biome-ignore lint/correctness/useExhaustiveDependencies: it reads all of them
  useEffect(dress, [language, theme, contrast])
  return (
    <Router base={routerBase}>
      <Switch>
        {/* For anybody: nobody is asked to sign in, and the server is not asked who looks. */}
        <Route path="/shared/:code">
          {({ code }) => (
            <Fault at={code}>
              <Suspense fallback={null}>
                <SharedPage key={code} code={code} />
              </Suspense>
            </Fault>
          )}
        </Route>
        <Route>
          <Gate>{(who) => <Shell who={who} />}</Gate>
        </Route>
      </Switch>
    </Router>
  )
}

dress()
void loadProblems(languageOf(preferences().language))
// The link is relative, and would lead elsewhere on another address of the page.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
if (icon) icon.href = new URL('icon.svg', base).href
const root = document.getElementById('root')
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  )
