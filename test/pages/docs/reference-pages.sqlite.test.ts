import { describe, expect, spyOn, test } from "bun:test"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib"
import { codes } from "../../../src/core/errors"
import { builtEventTypes } from "../../../src/events/registry"
import { guides } from "../../../src/pages/docs/guides"
import { codeBlocks } from "../../docs/code-blocks"
import { mail } from "../../harness/mail"
import { root } from "../../harness/migrations"
import { published } from "../../harness/published"
import { sharedService } from "../../harness/shared-service"
import { BEHIND_PROXY, stranger } from "../../identity/entrance"

const service = await sharedService(BEHIND_PROXY)
const description = await published()

const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    operation,
    address: `/docs/${operation.operationId}`,
  })),
)

/** Every page of the reference that a reader can reach. */
const addresses = [
  "/docs",
  "/docs/",
  "/docs/errors",
  "/docs/event-types",
  "/docs/search?q=domain",
  ...description.tags.map(({ name }) => `/docs/${name}`),
  ...operations.map(({ address }) => address),
  ...guides.map(({ name }) => `/docs/guides/${name}`),
  ...Object.keys(codes).map((code) => `/docs/errors/${code}`),
]

const pages = new Map<string, string>()

/** Requests of another address each, so that no limit of a minute is met. */
async function look(address: string): Promise<string> {
  const known = pages.get(address)
  if (known !== undefined) return known
  const page = await stranger(service).get(address)
  expect([address, page.status]).toEqual([address, 200])
  pages.set(address, page.text)
  return page.text
}

/** The text of markup, as a reader sees it. */
const shownText = (markup: string) =>
  markup
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

const idsOf = (text: string) => [...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id)

const LARGEST_BYTES = 100 * 1024

test("each page is whole: it has a title, balanced tags and ids of its own, and is small", async () => {
  for (const address of addresses) {
    const text = await look(address)
    const ids = idsOf(text)
    expect([address, ids.length]).toEqual([address, new Set(ids).size])
    expect([address, text.match(/<h1[ >]/g)?.length]).toEqual([address, 1])
    expect(text).toMatch(/<title>[^<]{4,}<\/title>/)
    expect(text).toContain('name="viewport"')
    expect([address, unbalanced(text)]).toEqual([address, []])
    expect(gzipSync(text).length).toBeLessThan(LARGEST_BYTES)
  }
})

function unbalanced(text: string): string[] {
  const open: string[] = []
  for (const [, close, name = ""] of text.matchAll(/<(\/?)([a-z0-9]+)[^>]*>/g)) {
    if (["meta", "link", "wbr", "br", "input", "hr"].includes(name)) continue
    if (!close) open.push(name)
    else if (open.pop() !== name) return [`</${name}>`]
  }
  return open
}

test("a page runs nothing inline, loads nothing from elsewhere, and is framed by no other page", async () => {
  const { headers } = await stranger(service).get("/docs/postEmails")
  const policy = headers.get("content-security-policy") ?? ""
  expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'")
  for (const rule of ["frame-ancestors 'none'", "base-uri 'none'", "trusted-types 'none'"]) {
    expect(policy).toContain(rule)
  }
  expect(policy).not.toMatch(/unsafe|\*/)
  for (const address of addresses) {
    const text = await look(address)
    expect(text).not.toMatch(
      /<script(?! (?:type="module" )?src="\/assets\/)|<style|style="|\son\w+=|<iframe|<img/,
    )
    const loaded = [...text.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]+)"/g)]
    expect(
      loaded.map(([, to = ""]) => to).filter((to) => !/^\/assets\/|^data:,$/.test(to)),
    ).toEqual([])
  }
})

test("signing in leads back to the page that is read", async () => {
  for (const address of addresses) {
    const next = encodeURIComponent(address.replace(/\/$/, ""))
    const links = (await look(address)).match(/href="\/sign-in[^"]*"/g)
    expect(links).toEqual([`href="/sign-in?next=${next}"`])
  }
  expect((await stranger(service).get("/sign-in?next=%2Fdocs")).status).toBe(200)
})

test("every link leads to a page, and to a place on it where it names one", async () => {
  const broken: string[] = []
  for (const address of addresses) {
    const text = await look(address)
    for (const [, to = ""] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
      if (/^https:\/\/|^\/(v1\/openapi\.json|mailbox|sign-in\?next=[\w%.-]+)?$/.test(to)) continue
      const [path = "", place] = to.split("#")
      const target = path === "" ? address : path
      if (!addresses.includes(target)) broken.push(`${address}: ${to}`)
      else if (place && !idsOf(await look(target)).includes(place)) broken.push(`${address}: ${to}`)
    }
  }
  expect(broken).toEqual([])
})

test.each(["/docs/postEmails", "/docs/search-index", "/docs/search?q=domain", "/v1/openapi.json"])(
  "%s is kept by its ETag, and comes compressed as the client takes it",
  async (path) => {
    const door = stranger(service)
    const first = await door.get(path)
    const etag = first.headers.get("etag") ?? ""
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    expect(first.headers.get("cache-control")).toBe("no-cache")
    expect(first.headers.get("vary")).toContain("accept-encoding")
    const again = await door.call("GET", path, { headers: { "if-none-match": etag } })
    expect([again.status, again.text]).toEqual([304, ""])
    const { url } = service.listen()
    for (const [accepted, coding, unpack] of [
      ["gzip, deflate, br", "br", brotliDecompressSync],
      ["br", "br", brotliDecompressSync],
      ["gzip;q=0.5, br;q=0", "gzip", gunzipSync],
      ["*", "br", brotliDecompressSync],
    ] as const) {
      const headers = { "accept-encoding": accepted }
      const packed = await fetch(url + path, { headers, decompress: false })
      expect([accepted, packed.headers.get("content-encoding")]).toEqual([accepted, coding])
      expect(unpack(await packed.bytes()).toString()).toBe(first.text)
    }
  },
)

test("a name may come percent-encoded, as some programs write it", async () => {
  const pairs = [
    ["/docs/errors/rate%5Flimited", "/docs/errors/rate_limited"],
    ["/docs/guides/%75pgrading", "/docs/guides/upgrading"],
    ["/docs/event%2Dtypes", "/docs/event-types"],
  ] as const
  for (const [encoded, plain] of pairs) expect(await look(encoded)).toBe(await look(plain))
  const page = await stranger(service).get("/docs/%ZZ")
  expect(page.status).toBe(404)
})

test("what does not exist is a page that says so", async () => {
  for (const path of ["nothing", "<b>", "guides/nothing", "guides/..%2f..%2fREADME", "errors/x"]) {
    const page = await stranger(service).get(`/docs/${path}`)
    expect([path, page.status]).toEqual([path, 404])
    expect(page.text).toContain("That did not work")
    expect(page.text).not.toContain("<b>")
  }
})

describe("the page of an operation", () => {
  test("has its path, its words, its fields, its answer and its errors", async () => {
    for (const { path, operation, address } of operations) {
      const text = shownText(await look(address))
      expect(text).toContain(path)
      expect(text).toContain(operation.summary)
      expect(text).toContain((operation.description ?? "").split("`", 1)[0] as string)
      const body = operation.requestBody?.content["application/json"]?.schema as
        | { properties?: object }
        | undefined
      for (const name of Object.keys(body?.properties ?? {})) expect(text).toContain(name)
      const failures = Object.values(
        operation.responses as Record<string, { "x-error-codes"?: string[] }>,
      )
      for (const code of failures.flatMap((one) => one["x-error-codes"] ?? [])) {
        expect([address, text.includes(code)]).toEqual([address, true])
      }
      expect(text).toMatch(/Response\n|Response</)
    }
  })

  test("has an example in each language, or says why there is none", async () => {
    for (const { path, address } of operations) {
      const text = await look(address)
      const labels = [...text.matchAll(/<label for="language-\w+">([^<]+)</g)].map(([, one]) => one)
      const is_socket = ["/v1/events/stream", "/v1/subscriber-inbox/ws"].includes(path)
      const wanted = is_socket
        ? ["curl", "TypeScript"]
        : ["curl", "TypeScript", "Python", "Go", "PHP"]
      const with_command = labels.includes("belfry") || text.includes("No command of belfry")
      expect([address, labels.filter((one) => one !== "belfry"), with_command]).toEqual([
        address,
        wanted,
        true,
      ])
    }
  })
})

test("an old address of the one-page reference still leads to its operation", async () => {
  const ids = idsOf(await look("/docs"))
  for (const { operation } of operations) expect(ids).toContain(operation.operationId)
  for (const { name } of description.tags) expect(ids).toContain(name)
  for (const id of ["first", "credentials", "answers", "repeat", "errors", "signatures"]) {
    expect(ids).toContain(id)
  }
})

test("the page of each code has its causes and what to do", async () => {
  for (const [code, [status]] of Object.entries(codes)) {
    const text = await look(`/docs/errors/${code}`)
    expect(text).toContain(`<dd>${status}`)
    const [, causes = "", remedy = ""] =
      /<h2 id="causes">([\s\S]*)<h2 id="remedy">([\s\S]*)<h2 id="example">/.exec(text) ?? []
    expect([code, /<li>.{10,}/.test(causes), /<p>.{8,}/s.test(remedy)]).toEqual([code, true, true])
  }
})

test("the response of a code has the details that its errors have", async () => {
  const detailsOf = async (code: string) => {
    const [, part = ""] = (await look(`/docs/errors/${code}`)).split('<h2 id="example">')
    const [, source = ""] = /<code>([\s\S]*?)<\/code>/.exec(part) ?? []
    return JSON.parse(shownText(source)).error.details as Record<string, unknown>
  }
  const project = await service.project()
  await project.post("/v1/suppressions", { email: "gone@example.test" })
  const causes: [string, object][] = [
    ["suppressed_recipient", mail({ to: "gone@example.test" })],
    ["domain_not_verified", mail({ from: "a@nobody.example" })],
    ["missing_required_field", mail({ to: undefined })],
    ["invalid_email", mail({ to: "nobody" })],
    ["validation_error", mail({ to: "nobody", subject: "" })],
  ]
  for (const [code, body] of causes) {
    const { error } = (await project.post("/v1/emails", body)).body as unknown as Refused
    expect(error.code).toBe(code)
    const names = Object.keys(await detailsOf(code))
    expect([code, names.sort()]).toEqual([code, Object.keys(error.details).sort()])
  }
  expect(await detailsOf("rate_limit_exceeded")).toContainKeys(["retry_after", "limit", "scope"])
  expect(await detailsOf("not_found")).toEqual({})
})

interface Refused {
  error: { code: string; details: object }
}

test("fields that this server does not have stand in one line, and not in the table", async () => {
  const [, body = ""] = (await look("/docs/postEmails")).split('<h2 id="body">')
  const [own = ""] = body.split('<h2 id="answer">')
  expect(shownText(own)).toContain("This server does not have topic_id, topicId, region")
  expect(own).not.toContain("Not available on this server")
})

test("every type of event has its fields and an example", async () => {
  const page = await look("/docs/event-types")
  expect(page).not.toContain('id="user.login"')
  expect(page).toContain('id="sms.received"')
  for (const { type, example } of builtEventTypes) {
    const [, part = ""] = page.split(`<details id="${type}"`)
    const text = shownText(part.split("</details>", 1)[0] ?? "")
    expect([type, text.includes("data.")]).toEqual([type, true])
    expect(text).toContain(JSON.stringify(example, null, 2))
  }
})

test("the guide to webhooks has a program that checks a signature, in five languages", async () => {
  const text = shownText(await look("/docs/guides/webhooks"))
  const programs = codeBlocks("docs/webhooks.md").filter(
    ({ heading }) => heading === "Check the signature yourself",
  )
  expect(programs).toHaveLength(5)
  for (const { code } of programs) expect(text).toContain(code.trim())
})

/** They are for developers, or have pages of their own. */
const NO_GUIDES = ["bench-log.md", "decisions.md", "errors.md"]

test("each page of docs/ is a guide", () => {
  const files = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"))
  const wanted = files.filter((name) => !NO_GUIDES.includes(name))
  expect(guides.map(({ name }) => `${name}.md`).sort()).toEqual(wanted.sort())
  for (const { name, file } of guides) expect(file).toEndWith(`docs/${name}.md`)
})

describe("the search", () => {
  test("finds the guides of the pages themselves", async () => {
    const found = async (query: string) => look(`/docs/search?q=${encodeURIComponent(query)}`)
    expect(await found("chaos")).toContain('href="/docs/guides/mailbox#chaos')
    expect(await found("release a mail")).toContain('href="/docs/guides/mailbox#release-a-mail"')
    expect(await found("sign in")).toContain('href="/docs/guides/pages')
  })

  test("finds operations, guides and codes without a script", async () => {
    const first = async (query: string) => {
      const text = await look(`/docs/search?q=${encodeURIComponent(query)}`)
      return /<ul class="list">\s*<li><a href="([^"]+)"/.exec(text)?.[1]
    }
    expect(await first("send an email")).toBe("/docs/postEmails")
    expect(await first("send attachment")).toBe("/docs/postEmails")
    expect(await first("bedrock_throttled")).toBe("/docs/errors/bedrock_throttled")
    expect(await first("GET /v1/webhooks")).toBe("/docs/getWebhooks")
    expect(await first("post /v1/topics")).toBe("/docs/postTopics")
    expect(await first("email.bounced")).toBe("/docs/event-types#email.bounced")
    expect(await first("suppressed_recipient")).toBe("/docs/errors/suppressed_recipient")
    expect(await first("standard webhooks signature")).toStartWith("/docs/guides/webhooks")
    expect(await look("/docs/search?q=%3Cb%3Exyzzy")).toContain("“&lt;b&gt;xyzzy”")
  })

  test("reads the guides once, however often strangers search", async () => {
    await look("/docs/search?q=first")
    const opened = spyOn(Bun, "file")
    try {
      const anybody = stranger(service)
      for (const path of ["/docs/search?q=webhook", "/docs/search-index", "/docs/search-index"])
        expect((await anybody.get(path)).status).toBe(200)
      const guideFiles = guides.map(({ file }) => file)
      expect(opened.mock.calls.filter(([file]) => guideFiles.includes(String(file)))).toEqual([])
    } finally {
      opened.mockRestore()
    }
  })

  test("gives the script an index in which every place exists", async () => {
    const { body } = await stranger(service).get("/docs/search-index")
    const entries = body as unknown as { to: string }[]
    expect(entries.length).toBeGreaterThan(operations.length + Object.keys(codes).length)
    for (const { to } of entries) {
      const [path = "", place] = to.split("#")
      if (place) expect([to, idsOf(await look(path)).includes(place)]).toEqual([to, true])
      else expect(addresses).toContain(path)
    }
  })
})
