import { describe, expect, test } from "bun:test"
import { suppress } from "../../src/suppressions/suppressions"
import type { Reply } from "../harness/client"
import { movableClock } from "../harness/clock"
import fc from "../harness/properties"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { linkTo, unsubscribedIn } from "../harness/unsubscribed"
import { BEHIND_PROXY, stranger } from "../identity/entrance"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const { store } = service

const FORM = { "content-type": "application/x-www-form-urlencoded" }
const ONE_CLICK = "List-Unsubscribe=One-Click"
const NOTHING = { ended: [], consents: [], events: [] }

const ask = (method: string, path: string, body = "", headers: Record<string, string> = FORM) =>
  stranger(service).call(method, path, { ...(method === "POST" && { body }), headers })

const look = (path: string, headers: Record<string, string> = {}) => ask("GET", path, "", headers)

const post = (path: string, fields: Record<string, string>) =>
  ask("POST", path, new URLSearchParams(fields).toString())

const titleOf = ({ text }: Reply) => /<h1>(.*)<\/h1>/.exec(text)?.[1]

async function linked(key?: string) {
  const project = await service.project()
  const token = await linkTo(service, project, key)
  return { project, token, path: `/u/${token}`, state: () => unsubscribedIn(service, project) }
}

const ENDED = {
  ended: ["ann@example.test unsubscribe page category news"],
  consents: ["ann@example.test news withdrawn one_click"],
}

/** As mail providers send it: the form in the URL's encoding, or in parts. */
const BY_PROVIDERS: [string, string, string][] = [
  ["application/x-www-form-urlencoded", "the usual form", ONE_CLICK],
  ["application/x-www-form-urlencoded; charset=UTF-8", "a form with a charset", ONE_CLICK],
  ["application/x-www-form-urlencoded", "a form with an end of line", `${ONE_CLICK}\r\n`],
  ["Application/X-WWW-Form-Urlencoded", "a form in lower case", ONE_CLICK.toLowerCase()],
  ["application/x-www-form-urlencoded", "an encoded form", encodeURIComponent(ONE_CLICK)],
  ["", "a form without a type", `${ONE_CLICK}\n`],
  [
    'multipart/form-data; charset=utf-8; boundary="b7a"',
    "a form in parts, with an end of line",
    '--b7a\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name="list-unsubscribe"\r\n\r\none-click\r\n\r\n--b7a--',
  ],
  [
    "multipart/form-data; boundary=----b7a",
    "a form in parts",
    '------b7a\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n------b7a--\r\n',
  ],
]

describe("one click", () => {
  test.each(BY_PROVIDERS)("as %s, %s, ends the category at once", async (type, _, body) => {
    const { path, state } = await linked()
    const answer = await ask("POST", path, body, { "content-type": type, "user-agent": "Google" })
    expect([answer.status, answer.text]).toEqual([200, ""])
    expect(answer.headers.get("set-cookie")).toBeNull()
    expect(answer.headers.get("location")).toBeNull()
    expect(answer.headers.get("cache-control")).toBe("no-store")
    const { events, ...rest } = await state()
    expect(rest).toEqual(ENDED)
    expect(events.map(({ type }) => type).sort()).toEqual([
      "subscriber.unsubscribed",
      "suppression.created",
    ])
    expect(events.find(({ type }) => type.startsWith("subscriber"))?.data).toEqual({
      subscriber_id: null,
      external_id: null,
      channel: "email",
      scope: { type: "category", key: "news" },
      reason: "one_click",
      timestamp: expect.any(String),
    })
  })

  test("over a socket, in parts as a program writes them, with a file among them", async () => {
    const { path, state } = await linked()
    const { url } = service.listen()
    const form = new FormData()
    form.append("file", new Blob(["One-Click"]), "List-Unsubscribe")
    const nothing = await fetch(`${url}${path}`, { method: "POST", body: form })
    expect(nothing.status).toBe(422)
    form.append("List-Unsubscribe", "One-Click")
    const answer = await fetch(`${url}${path}`, { method: "POST", body: form, redirect: "manual" })
    expect([answer.status, await answer.text()]).toEqual([200, ""])
    expect((await state()).ended).toEqual(ENDED.ended)
  })

  test("again and again, and at the same time, changes nothing more", async () => {
    const { path, state } = await linked()
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask("POST", path, ONE_CLICK)))
    answers.push(await ask("POST", path, ONE_CLICK))
    expect(answers.map(({ status, text }) => `${status}${text}`)).toEqual(Array(9).fill("200"))
    const { events, ...rest } = await state()
    expect(rest).toEqual(ENDED)
    expect(events).toHaveLength(2)
  })

  test("ends one category of one address of one project", async () => {
    const { project, token, state } = await linked()
    const other = await linked()
    await linkTo(service, project, "offers")
    await linkTo(service, project, "news", { address: "ben@example.test" })
    await ask("POST", `/u/${token}`, ONE_CLICK)
    expect((await state()).ended).toEqual(ENDED.ended)
    expect(await other.state()).toEqual(NOTHING)
  })

  test.each([
    ["topic", "topic releases"],
    ["broadcast", "broadcast "],
  ] as const)("of a %s ends that", async (type, ended) => {
    const project = await service.project()
    const token = await linkTo(service, project, "releases", { type })
    await ask("POST", `/u/${token}`, ONE_CLICK)
    const state = await unsubscribedIn(service, project)
    expect(state.ended).toEqual([`ann@example.test unsubscribe page ${ended}`])
  })
})

describe("looking changes nothing:", () => {
  test.each([
    ["GET", ""],
    ["HEAD", ""],
    ["GET", `?${ONE_CLICK}`],
    ["GET", "?action=unsubscribe"],
    ["HEAD", `?${ONE_CLICK}`],
  ])("%s %s", async (method, query) => {
    const { token, state } = await linked()
    const scanner = { "user-agent": "Barracuda", purpose: "prefetch", ...FORM }
    for (const place of ["u", "p"]) {
      const answer = await ask(method, `/${place}/${token}${query}`, "", scanner)
      expect([answer.status, answer.headers.get("set-cookie")]).toEqual([200, null])
    }
    expect(await state()).toEqual(NOTHING)
  })

  test.each([
    ["an empty body", "", FORM, 422],
    ["another form", "a=b", FORM, 422],
    ["the header's value alone", "One-Click", FORM, 422],
    ["another value", "List-Unsubscribe=Two-Clicks", FORM, 422],
    ["JSON", '{"List-Unsubscribe":"One-Click"}', { "content-type": "application/json" }, 400],
    ["parts that are none", "x", { "content-type": "multipart/form-data; boundary=b" }, 400],
    ["more than a form has", "x".repeat(20_000), FORM, 413],
  ])("a POST of %s", async (_, body, headers, status) => {
    const { path, state } = await linked()
    const answer = await ask("POST", path, body, headers)
    expect(answer.status).toBe(status)
    expect(answer.headers.get("content-type")).toBe("text/html;charset=utf-8")
    expect(await state()).toEqual(NOTHING)
  })

  test.each(["PUT", "PATCH", "DELETE", "OPTIONS"])("%s", async (method) => {
    const { path, state } = await linked()
    expect((await stranger(service).call(method, path, {})).status).toBe(404)
    expect(await state()).toEqual(NOTHING)
  })
})

test("no form of any kind breaks a page, or acts without the one field that counts", async () => {
  const { path, token, state } = await linked()
  const names = fc.oneof(
    fc.constantFrom("action", "seen category:news", "get category:news", "__proto__", "toString"),
    fc.string(),
  )
  const values = fc.string().filter((value) => value !== "unsubscribe")
  const forms = fc.array(fc.tuple(names, values), { maxLength: 8 })
  const types = fc.constantFrom(
    FORM["content-type"],
    "multipart/form-data; boundary=b",
    "text/plain",
  )
  await fc.assert(
    fc.asyncProperty(forms, types, fc.boolean(), async (fields, type, is_raw) => {
      const body = is_raw ? JSON.stringify(fields) : new URLSearchParams(fields).toString()
      const { status } = await ask("POST", path, body, { "content-type": type })
      expect([400, 422]).toContain(status)
    }),
    { numRuns: 300, seed: 20_261_122 },
  )
  expect(await state()).toEqual(NOTHING)
  expect((await post(`/p/${token}`, { __proto__: "1", action: "save" })).status).toBe(200)
})

test("a token with any character changed is a page that says so, and acts on nothing", async () => {
  const { token, state } = await linked()
  const wrong = [...token].flatMap((one, at) => [
    `${token.slice(0, at)}${one === "a" ? "b" : "a"}${token.slice(at + 1)}`,
    `${token.slice(0, at)}${token.slice(at + 1)}`,
  ])
  for (const one of [...wrong, "x", "..%2f", `${token}a`, `${token}%00`]) {
    for (const path of [`/u/${one}`, `/p/${one}`]) {
      const answers = [await look(path), await ask("POST", path, `${ONE_CLICK}&action=none`)]
      for (const answer of answers) {
        expect([path, answer.status, titleOf(answer)]).toEqual([
          path,
          404,
          "This link is not valid",
        ])
      }
      clock.advance({ seconds: 60 })
    }
  }
  expect(await state()).toEqual(NOTHING)
})

describe("the unsubscribe page", () => {
  test("asks, and its button ends the category", async () => {
    const { path, token, state } = await linked()
    const asked = await look(path)
    expect([asked.status, titleOf(asked)]).toEqual([200, "Unsubscribe"])
    expect(asked.text).toContain("<bdi>news</bdi>")
    const done = await post(`${path}?lang=en`, { action: "unsubscribe" })
    expect([done.status, titleOf(done)]).toEqual([200, "You are unsubscribed"])
    expect(done.text).toContain(`href="/p/${token}?lang=en"`)
    expect(await state()).toMatchObject({
      ended: ENDED.ended,
      consents: ["ann@example.test news withdrawn page"],
    })
    expect(titleOf(await look(path))).toBe("You are unsubscribed")
  })

  test("shows the address in part only, since a mail may be passed on", async () => {
    const { path, token } = await linked()
    for (const one of [path, `/p/${token}`]) {
      const { text } = await look(one)
      expect(text).toContain("a•••@example.test")
      expect(text).not.toContain("ann@")
    }
  })
})

describe("the preference page", () => {
  async function known() {
    const project = await service.project()
    const token = await linkTo(service, project, "news")
    await linkTo(service, project, "offers")
    await linkTo(service, project, "releases", { type: "topic" })
    await linkTo(service, project, "theirs", { address: "ben@example.test" })
    return { project, token, path: `/p/${token}`, state: () => unsubscribedIn(service, project) }
  }

  const choicesIn = ({ text }: Reply) =>
    [...text.matchAll(/type="checkbox" name="get ([^"]+)" value="1"( checked)?>/g)].map(
      ([, name, checked]) => `${name}${checked ?? ""}`,
    )

  const ALL = ["category:news", "category:offers", "topic:releases"]

  const form = (wanted: string[], seen = ALL): Record<string, string> => ({
    action: "save",
    ...Object.fromEntries(seen.map((name) => [`seen ${name}`, "1"])),
    ...Object.fromEntries(wanted.map((name) => [`get ${name}`, "1"])),
  })

  test("shows every kind of mail of the address, and takes choices back and forth", async () => {
    const { path, token, state } = await known()
    expect(choicesIn(await look(path))).toEqual(ALL.map((name) => `${name} checked`))
    await ask("POST", `/u/${token}`, ONE_CLICK)
    const second = ["category:news", "category:offers checked", "topic:releases checked"]
    expect(choicesIn(await look(path))).toEqual(second)

    const saved = await post(path, form(["category:news", "topic:releases"]))
    expect(choicesIn(saved)).toEqual([
      "category:news checked",
      "category:offers",
      "topic:releases checked",
    ])
    expect(saved.text).toContain('role="status">Your choice is saved.')
    const { ended, consents, events } = await state()
    expect(ended).toEqual(["ann@example.test unsubscribe page category offers"])
    expect(consents).toEqual([
      "ann@example.test news withdrawn one_click",
      "ann@example.test news granted page",
      "ann@example.test offers withdrawn page",
    ])
    expect(events.map(({ type }) => type).filter((type) => type.startsWith("subscriber"))).toEqual([
      "subscriber.unsubscribed",
      "subscriber.resubscribed",
      "subscriber.unsubscribed",
    ])
    expect(events.map(({ type }) => type)).toContain("suppression.deleted")
  })

  test("ends all at once by its second button", async () => {
    const { path, state } = await known()
    const all = { ...form(ALL), action: "none" }
    expect(choicesIn(await post(path, all))).toEqual(ALL)
    expect((await state()).ended).toHaveLength(3)
    expect(choicesIn(await post(path, form(ALL)))).toEqual(ALL.map((name) => `${name} checked`))
    expect((await state()).ended).toEqual([])
  })

  test("and one click at the same time leave one choice and one record each", async () => {
    const { project, path, state } = await known()
    const tokens = [
      await linkTo(service, project, "news"),
      await linkTo(service, project, "offers"),
      await linkTo(service, project, "releases", { type: "topic" }),
    ]
    const all = { ...form(ALL), action: "none" }
    const clicks = [...tokens, ...tokens].map((token) => ask("POST", `/u/${token}`, ONE_CLICK))
    const answers = await Promise.all([post(path, all), ...clicks, post(path, all)])
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const { ended, consents } = await state()
    expect(ended).toHaveLength(3)
    expect(consents).toHaveLength(3)
  })

  test("changes only what the person saw", async () => {
    const { path, state } = await known()
    await post(path, form([], ["category:news", "category:unknown"]))
    expect((await state()).ended).toEqual(["ann@example.test unsubscribe page category news"])
    for (const nothing of [{}, { action: "none" }, { action: "save", "get category:news": "1" }]) {
      await post(path, nothing as Record<string, string>)
    }
    expect((await state()).ended).toEqual(["ann@example.test unsubscribe page category news"])
  })

  test("brings back what unsubscribing ended, and nothing else", async () => {
    const { project, path, state } = await known()
    const address = "ann@example.test"
    const news = { type: "category" as const, key: "news" }
    const others = [
      { channel: "email", address, reason: "bounce", origin: "event" },
      { channel: "email", address, reason: "manual", origin: "api", scope: news },
    ] as const
    await store.tx(async (tx) => {
      for (const one of others) await suppress(tx, project.project_id, one)
    })
    await post(path, form([]))
    await post(path, form(ALL))
    expect((await state()).ended).toEqual([
      "ann@example.test bounce event project ",
      "ann@example.test manual api category news",
    ])
  })
})

describe("pages for recipients", () => {
  const everyPage = async (project: TestProject, query = "", headers = {}) => {
    const token = await linkTo(service, project)
    return [
      await look(`/u/${token}${query}`, headers),
      await look(`/p/${token}${query}`, headers),
      await look(`/u/nothing${query}`, headers),
    ]
  }

  test("run no script, are framed and kept by nobody, and tell nobody their address", async () => {
    for (const { headers, text } of await everyPage(await service.project())) {
      const policy = headers.get("content-security-policy") ?? ""
      expect(policy).toStartWith("default-src 'none'; style-src 'sha256-")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(headers.get("referrer-policy")).toBe("no-referrer")
      expect(headers.get("cache-control")).toBe("no-store")
      expect(headers.get("set-cookie")).toBeNull()
      expect(text).not.toMatch(/<script|\son\w+=|style="|src=/i)
      const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? ""
      expect(policy).toContain(new Bun.CryptoHasher("sha256").update(style).digest("base64"))
    }
  })

  test.each([
    ["en", "ltr", ["Unsubscribe", "Email settings", "This link is not valid"]],
    ["de", "ltr", ["Abmelden", "E-Mail-Einstellungen", "Dieser Link ist nicht gültig"]],
    ["fr", "ltr", ["Se désabonner", "Préférences d’e-mail", "Ce lien n’est pas valide"]],
    [
      "es",
      "ltr",
      ["Cancelar la suscripción", "Preferencias de correo", "Este enlace no es válido"],
    ],
    ["ar", "rtl", ["إلغاء الاشتراك", "إعدادات البريد الإلكتروني", "هذا الرابط غير صالح"]],
  ])("speak %s, by the address or as the browser wants", async (language, direction, titles) => {
    const project = await service.project()
    const asked = await everyPage(project, `?lang=${language}`, { "accept-language": "en" })
    const preferred = await everyPage(project, "", {
      "accept-language": `ja, ${language}-XX;q=0.8, en;q=0.1`,
    })
    for (const pages of [asked, preferred]) {
      expect(pages.map(titleOf)).toEqual(titles)
      for (const { text } of pages) {
        expect(text).toContain(`<html lang="${language}" dir="${direction}">`)
        expect(text).toContain(`lang="${language}" hreflang="${language}" aria-current="true">`)
      }
    }
  })

  test("speak English to whom no language is known", async () => {
    for (const accept of ["", "ja", "de;q=0, ja", "*", "x".repeat(5000), ";;q=,,-"]) {
      const pages = await everyPage(await service.project(), "?lang=xx", {
        "accept-language": accept,
      })
      for (const { text } of pages) expect(text).toContain('<html lang="en" dir="ltr">')
    }
  })

  test("show the sender's branding, and load the logo from its host alone", async () => {
    const project = await service.project()
    const branding = {
      name: 'Ac"me <b>',
      logo_url: "https://cdn.example.test/a/logo.png?v=1;2,3",
      primary_color: "#ffcc00",
      support_url: "https://example.test/help",
    }
    await project.call("PATCH", "/v1/settings", { body: { branding } })
    const [page, preferences, unknown] = await everyPage(project)
    for (const one of [page, preferences]) {
      expect(one?.text).toContain('alt="Ac&quot;me &lt;b&gt;"')
      expect(one?.text).toContain('<img src="https://cdn.example.test/a/logo.png?v=1;2,3"')
      expect(one?.text).toContain(
        '<a href="https://example.test/help" rel="noopener noreferrer">Help',
      )
      expect(one?.text).toContain(":root{--accent:rgb(255 204 0);--on-accent:#000}")
      const policy = one?.headers.get("content-security-policy") ?? ""
      expect(policy).toContain("img-src data: https://cdn.example.test;")
      const style = /<style>([^<]*)<\/style>/.exec(one?.text ?? "")?.[1] ?? ""
      expect(policy).toContain(new Bun.CryptoHasher("sha256").update(style).digest("base64"))
    }
    expect(unknown?.text).not.toContain("cdn.example.test")
    await project.call("PATCH", "/v1/settings", {
      body: { branding: { primary_color: "#123", logo_url: null } },
    })
    const [plain] = await everyPage(project)
    expect(plain?.text).toContain(":root{--accent:rgb(17 34 51);--on-accent:#fff}")
    expect(plain?.text).toContain("<bdi>Ac&quot;me &lt;b&gt;</bdi>")
  })

  test("are refused as pages, too: after as many requests as a public address takes", async () => {
    clock.freeze()
    const token = await linkTo(service, await service.project())
    const door = stranger(service)
    for (let tries = 0; tries < 100; tries++) await door.get(`/p/${token}`)
    expect((await door.get(`/p/${token}`)).status).toBe(200)
    let last = await door.get("/p/nothing")
    for (let tries = 0; tries < 5_900; tries++) last = await door.get("/p/nothing")
    expect([last.status, titleOf(last)]).toEqual([429, "That did not work"])
  })
})
