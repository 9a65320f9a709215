import type { FunctionComponent } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useObservable } from "./hooks"
import { type FoundPage, findPage, type PageName, type PageProps } from "./page-paths"
import { project, session } from "./page-session"
import { CodeBlock } from "./parts/code-block"
import { Frame } from "./parts/frame"
import { Empty, Trouble, Waiting } from "./parts/notice"
import { navigate, place } from "./router"
import { isSpentLink, projects, start_error } from "./session-start"

type PageModule = { Page: FunctionComponent<PageProps> }

interface PageRow {
  /** Each page is a file of its own, and loads when somebody opens it. */
  load: () => Promise<PageModule>
  /** Needs a session. */
  is_own?: boolean
}

const start = () => import("./pages/start")
/** One page for both addresses: the list stays while mails are opened. */
const mailbox: PageRow = { load: () => import("./pages/mailbox"), is_own: true }

const PAGES: Record<PageName, PageRow> = {
  start: { load: start },
  mailbox,
  mail: mailbox,
  inbox: { load: () => import("./pages/preview-inbox"), is_own: true },
  "sign-in": { load: () => import("./pages/sign-in") },
  parts: { load: () => import("./pages/parts") },
}

export function App() {
  const { path } = useObservable(place)
  const error = useObservable(start_error)
  const found = findPage(path)
  return (
    <Frame path={path}>
      {error !== undefined && (
        <div class="narrow">
          <Trouble
            error={error}
            onRetry={isSpentLink(error) ? undefined : () => location.reload()}
          />
        </div>
      )}
      {found ? <Shown found={found} path={path} /> : <p>There is no such page.</p>}
    </Frame>
  )
}

function Shown({ found, path }: { found: FoundPage; path: string }) {
  const known = useObservable(session)
  const { kind } = known
  const chosen = useObservable(project)
  const all = useObservable(projects)
  const { name, params } = found
  const { load, is_own } = PAGES[name]
  const is_stranger = is_own === true && kind === "signed_out"
  useEffect(() => {
    if (is_stranger) navigate(`/sign-in?next=${encodeURIComponent(path)}`, { replace: true })
  }, [is_stranger, path])
  if (is_stranger) return <Waiting />
  const is_person = known.kind === "token" && known.user !== null
  if (is_own && is_person && chosen === null) return all ? <NoProject /> : <Waiting />
  // Another project is another page: nothing of the first one stays.
  return <Loaded key={`${String(load)} ${chosen?.id}`} load={load} params={params} />
}

const NoProject = () => (
  <Empty title="You have no project">
    <p>Ask an admin of your account for a role in a project, or make one.</p>
    <CodeBlock label="belfry" text="belfry projects create --name Shop" />
  </Empty>
)

interface LoadedProps extends PageProps {
  load: PageRow["load"]
}

function Loaded({ load, params }: LoadedProps) {
  const [page, setPage] = useState<PageModule>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    load().then((module) => setPage(module), setError)
  }, [load])
  if (error !== undefined) return <Trouble error={error} onRetry={() => location.reload()} />
  return page ? <page.Page params={params} /> : <Waiting />
}
