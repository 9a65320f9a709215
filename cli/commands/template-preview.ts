import type { Client } from "../lib/client"
import type { Action } from "../lib/context"
import { Failure, usage } from "../lib/errors"
import { KnownTemplates, renderFiles } from "../lib/known-templates"
import { type LocalTemplate, onChange, readTemplates } from "../lib/template-folder"

const HOST = "127.0.0.1"

interface PreviewParts {
  client: Client
  folder: string
  /** By name, until a file changes: the server renders only so often a minute. */
  rendered: Map<string, Promise<Rendered>>
}

type Rendered = Awaited<ReturnType<typeof renderFiles>> | undefined

/** Serves pages with the rendered files on the loopback until Ctrl-C. */
export const preview: Action<{ port?: string }> = async (context, { port }, folder = "") => {
  const client = context.client()
  const count = readTemplates(folder).length
  const parts: PreviewParts = { client, folder, rendered: new Map() }
  const listeners = new Set<ReadableStreamDefaultController<string>>()
  using _ = onChange(folder, () => {
    parts.rendered.clear()
    for (const each of listeners) each.enqueue("data: changed\n\n")
  })
  const server = Bun.serve({
    hostname: HOST,
    port: portOf(port),
    idleTimeout: 0,
    fetch: (request, own) => answer(parts, request, `${HOST}:${own.port}`, listeners),
  })
  const url = `http://${HOST}:${server.port}/`
  const { paint, output } = context
  await output.line({ url, templates: count }, () => {
    const hint = paint.dim("Ctrl-C ends it")
    return `${paint.green("✓")} ${count} templates at ${url}  ${hint}`
  })
  return await new Promise<never>(() => {})
}

function portOf(text: string | undefined): number {
  const port = Number(text ?? 0)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw usage(`--port: "${text}" is not a port from 0 to 65535`)
}

type Listeners = Set<ReadableStreamDefaultController<string>>

/** Another name in Host would be a page elsewhere that reads the previews (DNS rebinding). */
async function answer(parts: PreviewParts, request: Request, host: string, listeners: Listeners) {
  const port = host.split(":")[1]
  if (![host, `localhost:${port}`].includes(request.headers.get("host") ?? "")) {
    return new Response("There is nothing for this host.\n", { status: 421 })
  }
  const { pathname, searchParams } = new URL(request.url)
  const [, kind = "", encoded = ""] = pathname.split("/")
  const name = decoded(encoded)
  if (kind === "changes") return changes(listeners)
  if (kind === "") return page(parts.folder, searchParams.get("name"))
  if (kind === "html" || kind === "text") return rendered(parts, kind, name)
  return new Response("There is no such page.\n", { status: 404 })
}

/** As it stands where it is encoded wrongly: no template has such a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function changes(listeners: Listeners): Response {
  let own: ReadableStreamDefaultController<string> | undefined
  const stream = new ReadableStream<string>({
    start(controller) {
      own = controller
      listeners.add(controller)
      controller.enqueue(": open\n\n")
    },
    cancel: () => void (own && listeners.delete(own)),
  })
  return new Response(stream, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  })
}

/** What mail may show: pictures and styles, no script and no form. */
const SANDBOX =
  "sandbox; default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; font-src https: data:"

async function rendered(parts: PreviewParts, kind: "html" | "text", name: string) {
  const headers = { "cache-control": "no-store", "content-security-policy": SANDBOX }
  const plain = { ...headers, "content-type": "text/plain; charset=utf-8" }
  try {
    const found = parts.rendered.get(name) ?? renderNamed(parts, name)
    parts.rendered.set(name, found)
    const mail = await found
    if (!mail)
      return new Response(`There is no template ${name}.\n`, { status: 404, headers: plain })
    const { subject, html, text } = mail
    if (kind === "text")
      return new Response(`${subject ?? ""}\n\n${text ?? ""}`, { headers: plain })
    return new Response(html ?? "", {
      headers: { ...headers, "content-type": "text/html; charset=utf-8" },
    })
  } catch (error) {
    parts.rendered.delete(name)
    if (!(error instanceof Failure)) throw error
    const hint = error.hint === undefined ? "" : `\n${error.hint}`
    return new Response(`${error.message}${hint}\n`, { status: 422, headers: plain })
  }
}

async function renderNamed({ client, folder }: PreviewParts, name: string): Promise<Rendered> {
  const all = readTemplates(folder)
  const local = all.find((one) => one.name === name)
  return local && renderFiles(client, await KnownTemplates.read(client), local, all)
}

const escapeHtml = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

function page(folder: string, chosen: string | null): Response {
  const all = namesOrMessage(folder)
  const names = Array.isArray(all) ? all : []
  const current = names.find(({ name }) => name === chosen) ?? names[0]
  const list = names.map((one) => item(one, one === current)).join("")
  const shown = current
    ? `<iframe title="Rendered mail" src="/html/${encodeURIComponent(current.name)}"></iframe>
<iframe title="Plain text" class="text" src="/text/${encodeURIComponent(current.name)}"></iframe>`
    : `<pre>${escapeHtml(String(all))}</pre>`
  return new Response(
    DOCUMENT.replace("%LIST%", () => list).replace("%SHOWN%", () => shown),
    {
      headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" },
    },
  )
}

function namesOrMessage(folder: string): LocalTemplate[] | string {
  try {
    return readTemplates(folder)
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}

const item = ({ name, subject }: LocalTemplate, is_current: boolean) =>
  `<li><a href="/?name=${encodeURIComponent(name)}"${is_current ? ' aria-current="page"' : ""}>` +
  `<b>${escapeHtml(name)}</b><br>${escapeHtml(subject ?? "")}</a></li>`

const DOCUMENT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Templates</title>
<meta name="viewport" content="width=device-width">
<style>
body{margin:0;display:flex;height:100vh;font:15px/1.4 system-ui,sans-serif;color:#1b1b1b;background:#f4f4f2}
nav{width:16rem;overflow:auto;border-right:1px solid #ccc;flex:none}
ul{list-style:none;margin:0;padding:0}
a{display:block;padding:.6rem .8rem;color:inherit;text-decoration:none;border-bottom:1px solid #ddd}
a[aria-current]{background:#fff;border-left:4px solid #1f5fbf}
main{flex:1;display:flex;flex-direction:column;min-width:0}
iframe{border:0;background:#fff;flex:3;margin:.6rem;width:calc(100% - 1.2rem)}
iframe.text{flex:1}
label{padding:.6rem .8rem 0}
pre{margin:1rem;white-space:pre-wrap}
body.narrow iframe{width:375px}
</style></head><body><nav aria-label="Templates"><ul>%LIST%</ul></nav>
<main><label><input type="checkbox" id="narrow"> as wide as a phone</label>%SHOWN%</main>
<script>
new EventSource("/changes").onmessage = () => location.reload()
const narrow = document.getElementById("narrow")
narrow.checked = sessionStorage.narrow === "yes"
const show = () => document.body.classList.toggle("narrow", narrow.checked)
narrow.onchange = () => { sessionStorage.narrow = narrow.checked ? "yes" : "no"; show() }
show()
</script></body></html>
`
