import { fail } from "../core/errors"
import type { AnyRoute, Call } from "../http/route"
import { assetResponse } from "./assets"
import { consolePage, type ShellFacts } from "./console-page"
import { html, type Markup } from "./html"
import { refusalPage, startContent } from "./small-page"

export type ConsoleParts = Pick<ShellFacts, "mode">

/** The addresses of the console. What they show is made in the browser, from the API alone. */
export const consoleRoutes = (parts: ConsoleParts): AnyRoute[] => [
  shell(parts, "/", "start", "What this server is", startContent()),
  shell(parts, "/mailbox", "mailbox", "Read the embedded mailbox"),
  shell(parts, "/mailbox/{mail_id}", "mailbox", "Read one mail of the embedded mailbox"),
  onlyUnderUp(parts, shell(parts, "/inbox", "preview-inbox", "See the inbox of a subscriber")),
  shell(parts, "/sign-in", "sign-in", "Sign in to the console"),
  shell(parts, "/parts", "parts", "The parts of which the console is made"),
  {
    ...open("/assets/{name}", "A script or style of the console"),
    produces: "text/javascript",
    handle: ({ request, params }: AssetCall) => assetResponse(request, params.name),
  },
]

type AssetCall = Call<unknown, unknown, { name: string }>

const open = (path: string, summary: string): Omit<AnyRoute, "handle"> => ({
  ...{ method: "GET", path, summary, callers: ["none"], scope: "-", status: [200] },
  page: refusalPage,
})

const shell = (
  { mode }: ConsoleParts,
  path: string,
  page: string,
  summary: string,
  content = NEEDS_SCRIPT,
): AnyRoute => ({
  ...open(path, summary),
  produces: "text/html",
  handle: ({ request }) => consolePage(request, { mode, page, content }),
})

/** A server for others shows nobody the inbox of somebody else. */
const onlyUnderUp = ({ mode }: ConsoleParts, row: AnyRoute): AnyRoute =>
  mode === "up" ? row : { ...row, handle: () => fail("not_found", "There is no page here.") }

const NEEDS_SCRIPT: Markup = html`<noscript><main class="narrow"><h1>Belfry</h1>
<p>This page needs JavaScript. The <a href="/docs">reference</a> is readable without it.</p></main></noscript>`
