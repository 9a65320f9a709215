import type { TestService } from "../harness/service"
import { addSubscriber, tokenOf } from "../inbox/subscriber-app"

/** A shop that people visit: another origin than the inbox, with the strictest policy that the inbox needs. */
export function startSite(service: TestService, inbox_url: string) {
  const tokens = new Map<string, () => Promise<string>>()
  const policy = [
    "default-src 'none'",
    `script-src 'self' ${inbox_url}`,
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${inbox_url} ${inbox_url.replace("http", "ws")}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ")
  const answer = (type: string, body: string) =>
    new Response(body, { headers: { "content-type": type, "content-security-policy": policy } })
  /** By path: answers of an inbox that says what it likes. */
  const fakes = new Map<string, unknown>()
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === "/token")
        return answer("text/plain", (await tokens.get(searchParams.get("reader") ?? "")?.()) ?? "x")
      if (pathname === "/shop.js") return answer("text/javascript", SHOP_SCRIPT)
      if (pathname === "/shop.css") return answer("text/css", SHOP_STYLE)
      if (pathname === "/face.svg") return answer("image/svg+xml", FACE)
      if (fakes.has(pathname)) return Response.json(fakes.get(pathname))
      if (pathname !== "/") return new Response(null, { status: 404 })
      return answer("text/html;charset=utf-8", shopPage(inbox_url, searchParams))
    },
  })
  return {
    fakes,
    origin: server.url.origin,
    /** A visitor with an inbox of their own, in a project that lists the origin of the shop. */
    async visitor() {
      const project = await service.project()
      const allowed_origins = [server.url.origin]
      await project.call("PATCH", "/v1/settings", { body: { allowed_origins } })
      const subscriber_id = await addSubscriber(service, project)
      tokens.set(subscriber_id, () => tokenOf(project, subscriber_id))
      return {
        project,
        subscriber_id,
        /** The address of the shop for this person; the attributes are those of the element. */
        url: (attributes: Record<string, string> = {}, page: Record<string, string> = {}) =>
          `${server.url}?${new URLSearchParams({ ...page, reader: subscriber_id, attributes: JSON.stringify(attributes) })}`,
        async send(fields: object): Promise<string> {
          const { body } = await project.post("/v1/inbox", { subscriber_id, ...fields })
          return body.data.id
        },
        async get(id: string) {
          return (await project.call("GET", `/v1/inbox/${id}`)).body.data
        },
      }
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

function shopPage(inbox_url: string, query: URLSearchParams): string {
  const given = JSON.parse(query.get("attributes") ?? "{}") as Record<string, string>
  const attributes = Object.entries({ url: inbox_url, ...given }).map(([k, v]) => ` ${k}="${v}"`)
  return `<!doctype html>
<html lang="${query.get("lang") ?? "en"}" dir="${query.get("dir") ?? "ltr"}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shop</title>
<link rel="icon" href="/face.svg"><link rel="stylesheet" href="/shop.css">
<script type="module" src="/shop.js"></script>
<script type="module" src="${inbox_url}/inbox.js"></script>
</head>
<body><header><h1>Shop</h1><belfry-inbox${attributes.join("")}></belfry-inbox></header><main><p>Lamps</p></main></body>
</html>`
}

/** It runs before the script of the inbox: what it sets has to last. */
const SHOP_SCRIPT = `
const inbox = document.querySelector("belfry-inbox")
inbox.token = async () => (await fetch("/token" + location.search)).text()
window.heard = []
for (const name of ["message", "opened", "action", "problem"])
  document.addEventListener("belfry-" + name, (event) => {
    heard.push([name, event.detail.message.title ?? event.detail.code])
    if (name === "opened" && window.stays) event.preventDefault()
  })`

const SHOP_STYLE = `:root { color-scheme: light dark }
body { margin: 0; font: 16px system-ui }
header { display: flex; justify-content: space-between; align-items: center; padding: 0 16px }
h1 { font-size: 20px } main { padding: 0 16px }`

const FACE = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40" fill="#c2410c"/><circle cx="20" cy="20" r="9" fill="#fff"/></svg>`
