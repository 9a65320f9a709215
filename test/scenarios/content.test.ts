import { expect, test } from "bun:test"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Belfry, startBelfry } from "../harness/binary"
import { type BrowserPage, startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { lean } from "./serve"

/** An opening sooner after the delivery than this is taken for a machine's. */
const HUMAN_MS = 2_500

const FRAME = `<html lang="en"><head><title>Acme</title></head><body>
<main>{{{content}}}</main>
<p><a href="{{unsubscribe_url}}">Unsubscribe</a></p></body></html>
`

const LETTER = `<h1>Hello {{name}}</h1>
<p><a href="{{link}}">Read the news</a></p>
`

/** A browser without a window says so, and is counted as a machine. */
const PERSON =
  "Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"

/** A folder of templates, as it stands in a repository. */
function templateFolder(home: string, target: string): string {
  const folder = join(home, "templates")
  const files: Record<string, string> = {
    "frame/template.json": "{}\n",
    "frame/email.html": FRAME,
    "letter/template.json": `${JSON.stringify({
      subject: "News for {{name}}",
      layout: "frame",
      variables: [
        { key: "name", type: "string", required: true },
        { key: "link", type: "url", required: true },
      ],
    })}\n`,
    "letter/email.html": LETTER,
    "letter/example.json": `${JSON.stringify({ name: "Ann", link: target })}\n`,
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

async function call(server: Belfry, method: string, path: string, body?: unknown) {
  const answer = await server.request(path, {
    method,
    headers: { "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
}

const post = (server: Belfry, path: string, body: unknown) => call(server, "POST", path, body)
const read = async (server: Belfry, path: string) => (await call(server, "GET", path)).body.data

/** Looks until `found` is there; the time limit of the test ends it otherwise. */
async function until<Found>(look: () => Promise<Found | undefined | false>): Promise<Found> {
  while (true) {
    const found = await look()
    if (found) return found
    await Bun.sleep(50)
  }
}

const delivered = (server: Belfry, id: string) =>
  until(async () => {
    const email = await read(server, `/v1/emails/${id}`)
    return email.status === "delivered" && email
  })

const NEWS = { from: "news@mailbox.test", category: "news", template_id: "letter" }

async function sendNews(server: Belfry, names: string[], link: string): Promise<string[]> {
  const messages = names.map((name) => ({
    ...NEWS,
    to: `${name}@mailbox.test`,
    variables: { name, link },
  }))
  const { status, body } = await post(server, "/v1/emails/batch", { messages })
  expect([status, body.data?.failed]).toEqual([200, 0])
  return body.data.results.map(({ id }: { id: string }) => id)
}

/** The html of a mail in the embedded mailbox, as a mail program gets it. */
async function mailTo(server: Belfry, address: string) {
  const [mail] = await read(server, `/v1/mailbox?to=${encodeURIComponent(address)}`)
  return (await read(server, `/v1/mailbox/${mail.id}`)) as {
    html: string
    headers: Record<string, string>
  }
}

const header = (headers: Record<string, string>, name: string): string =>
  Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1] ?? ""

test.skipIf(missing("chromium-headless-shell"))(
  "a template from a folder is sent, opened, clicked and unsubscribed; the next mail of its category is refused",
  async () => {
    await using site = Bun.serve({ port: 0, fetch: () => new Response("<title>News</title>") })
    const target = `http://127.0.0.1:${site.port}/news?a=1&b=2`
    await using server = await startBelfry({ env: lean })
    const tracked = await server.cli("settings", "set", "track_opens=true", "track_clicks=true")
    expect(tracked.code).toBe(0)
    const folder = templateFolder(server.home, target)
    expect((await server.cli("templates", "check", folder)).code).toBe(0)
    const pushed = await server.cli("templates", "push", folder)
    expect([pushed.code, JSON.parse(pushed.stdout).length]).toEqual([0, 2])
    const rendered = await server.cli("templates", "diff", folder)
    expect(rendered.code).toBe(0)

    const [ann = "", ben = ""] = await sendNews(server, ["ann", "ben", "kim"], target)
    const email = await delivered(server, ann)
    expect(email).toMatchObject({
      subject: "News for ann",
      template: { name: "letter", version: 1 },
      category: "news",
      track_opens: true,
      track_clicks: true,
    })
    const { html, headers } = await mailTo(server, "ann@mailbox.test")
    expect(header(headers, "list-unsubscribe-post")).toBe("List-Unsubscribe=One-Click")

    await Bun.sleep(HUMAN_MS)
    await readMail(html, async (page) => {
      expect(await page.read<string>("document.querySelector('h1').textContent")).toBe("Hello ann")
      expect(await page.read<boolean>("document.images[0]?.complete ?? false")).toBe(true)
      const link = await page.read<string>("document.links[0].href")
      expect(link).toStartWith(`${server.url}/t/c/`)
      await page.goto(link)
      expect(await page.read<string>("location.href")).toBe(target)
    })
    const counted = await until(async () => {
      const found = await read(server, `/v1/emails/${ann}/tracking`)
      return found.opens.human > 0 && found.clicks.human > 0 && found
    })
    expect(counted.links).toMatchObject([{ url: target, human: 1 }])

    const [, url = ""] = /<(https?:[^>]+)>/.exec(header(headers, "list-unsubscribe")) ?? []
    expect((await fetch(url)).status).toBe(200)
    expect((await read(server, "/v1/suppressions")).length).toBe(0)
    const form = new URLSearchParams({ "List-Unsubscribe": "One-Click" })
    expect((await fetch(url, { method: "POST", body: form })).status).toBe(200)

    const variables = { name: "ann", link: target }
    const again = { ...NEWS, to: "ann@mailbox.test", variables }
    const refused = await post(server, "/v1/emails", again)
    expect([refused.status, refused.body.error.code]).toEqual([422, "suppressed_recipient"])
    expect(refused.body.error.details).toMatchObject({ scope: { type: "category", key: "news" } })
    const preflight = await post(server, "/v1/emails/preflight", again)
    expect(preflight.body.data.errors).toMatchObject([{ code: "suppressed_recipient" }])

    const { category: _, ...plain } = again
    const other = await post(server, "/v1/emails", plain)
    expect(other.status).toBe(201)
    await delivered(server, other.body.id)
    await delivered(server, ben)
    const told = await read(server, `/v1/emails/${ann}/explain`)
    const stages = (stage: string) =>
      told.steps.filter((one: { stage: string }) => one.stage === stage)
    expect(stages("template")).toMatchObject([{ outcome: "pass" }])
    expect(stages("tracking")).toMatchObject([{ rule: "tracked", outcome: "pass" }])
    expect(stages("preference")[0].detail).toContain("news")
    const shown = await server.cli("emails", "explain", ann, "--json=verdict")
    expect(JSON.parse(shown.stdout)).toEqual({ verdict: "delivered" })
  },
)

/** From the loopback, since Chromium lets no page from elsewhere ask it for pictures. */
async function readMail(html: string, look: (page: BrowserPage) => Promise<void>) {
  await using browser = await startBrowser()
  const headers = { "content-type": "text/html; charset=utf-8" }
  await using program = Bun.serve({ port: 0, fetch: () => new Response(html, { headers }) })
  const url = `http://127.0.0.1:${program.port}/`
  await look(await browser.open(url, { headers: { "user-agent": PERSON } }))
}
