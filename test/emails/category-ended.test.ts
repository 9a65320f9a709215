import { describe, expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { replyOf, testSubmission } from "../harness/submission"
import { stranger } from "../identity/entrance"

const service = await sharedService()
const { login, submit } = testSubmission(service)

/** The link of the header, as a mail program finds it in the bytes that left. */
async function linkIn(project: TestProject, fields: object = {}) {
  const { body } = await project.post("/v1/emails", mail({ category: "news", ...fields }))
  const handed = await deliverAll(service)
  const raw = handed.find(({ message_id }) => message_id === body.id)?.raw ?? ""
  const [, path = ""] =
    /<http:\/\/belfry\.test(\/u\/[a-z2-7]+)>/.exec(String(Buffer.from(raw))) ?? []
  return path
}

const FORM = { "content-type": "application/x-www-form-urlencoded" }

const oneClick = (path: string) =>
  stranger(service).call("POST", path, { body: "List-Unsubscribe=One-Click", headers: FORM })

async function unsubscribed() {
  const project = await service.project()
  expect((await oneClick(await linkIn(project))).status).toBe(200)
  const send = (fields: Record<string, unknown> = {}) => project.post("/v1/emails", mail(fields))
  return { project, send }
}

const statusOf = async (project: TestProject, id: string) => {
  const { data } = (await project.get(`/v1/emails/${id}`)).body
  return [data.status, data.status_reason]
}

describe("the links in a body", () => {
  const html =
    '<p>Hi {{name}}</p><a href="https://example.test/">more</a> <a href="{{unsubscribe_url}}">out</a> <a href="{{preferences_url}}">choose</a>'
  const text = "{{unsubscribe_url}} {{preferences_url}}"

  async function received(fields: Record<string, unknown>, project: TestProject) {
    const { body } = await project.post(
      "/v1/emails",
      mail({ variables: { name: "Ann" }, ...fields }),
    )
    const handed = await deliverAll(service)
    const raw = handed.find(({ message_id }) => message_id === body.id)?.raw ?? ""
    return simpleParser(Buffer.from(raw))
  }

  const hrefs = (body: string | false) =>
    [...(body || "").matchAll(/href="([^"]+)"/g)].map(([, href = ""]) => href)

  test.each([
    ["of the email itself", async () => ({ subject: "News", html, text })],
    [
      "of a template",
      async (project: TestProject) => {
        const wanted = {
          name: "news",
          channel: "email",
          subject: "News",
          html,
          text,
          publish: true,
        }
        const { body } = await project.post("/v1/templates", wanted)
        return { template_id: body.data.id }
      },
    ],
  ])("%s lead to the pages of the recipient, and are not tracked", async (_, contentOf) => {
    const project = await service.project()
    const content = await contentOf(project)
    const seen = await received({ category: "news", track_clicks: true, ...content }, project)
    const [more = "", out = "", choose = ""] = hrefs(seen.html)
    expect(more).toMatch(/^http:\/\/belfry\.test\/t\/c\//)
    expect(out).toMatch(/^http:\/\/belfry\.test\/u\/[a-z2-7]{26}$/)
    expect(choose).toBe(out.replace("/u/", "/p/"))
    expect(seen.text?.trim()).toBe(`${out} ${choose}`)
    const list = seen.headers.get("list") as unknown as { unsubscribe: { url: string } }
    expect(list.unsubscribe.url).toBe(out)

    const door = stranger(service)
    expect((await door.get(new URL(choose).pathname)).text).toContain('name="get category:news"')
    const pressed = { body: "action=unsubscribe", headers: FORM }
    const done = await door.call("POST", new URL(out).pathname, pressed)
    expect(done.text).toContain("You are unsubscribed")
    const { status } = await project.post("/v1/emails", mail({ category: "news" }))
    expect(status).toBe(422)
  })

  test("are empty in an email without a category, which nobody can end", async () => {
    const project = await service.project()
    const seen = await received({ html, text: `out: ${text}`, track_clicks: false }, project)
    expect(hrefs(seen.html)).toEqual(["https://example.test/"])
    expect(seen.text?.trim()).toBe("out:")
    expect(seen.headers.has("list")).toBe(false)
  })
})

describe("after one click", () => {
  test("the next email of the category is refused, and every other one is delivered", async () => {
    const { project, send } = await unsubscribed()
    const refused = await send({ category: "news", to: "Ann@EXAMPLE.test" })
    expect([refused.status, refused.body.error.code]).toEqual([422, "suppressed_recipient"])
    const taken = [
      await send(),
      await send({ category: "offers" }),
      await send({ category: "news", to: "ben@example.test" }),
    ]
    expect(taken.map(({ status }) => status)).toEqual([201, 201, 201])
    await deliverAll(service)
    for (const { body } of taken) {
      expect(await statusOf(project, body.id)).toEqual(["delivered", null])
    }
  })

  test("a batch and a submission are told the same", async () => {
    const { project } = await unsubscribed()
    const messages = [
      mail({ category: "news" }),
      mail(),
      mail({ category: "news", to: "b@b.test" }),
    ]
    const { body } = await project.post("/v1/emails/batch", { messages })
    expect(body.data.results.map((one: { error?: { code: string } }) => one.error?.code)).toEqual([
      "suppressed_recipient",
      undefined,
      undefined,
    ])
    const session = await login(project.key)
    const letter = (fields: string) => ({
      raw: `From: bell@example.test\nTo: ann@example.test\nSubject: x\n${fields}\nhi\n`,
      to: "ann@example.test",
    })
    expect(await replyOf(submit(session, letter("X-Svc-Category: news\n")))).toBe(
      "550 5.7.1 suppressed_recipient",
    )
    await submit(session, letter("X-Svc-Category: offers\n"))
    await submit(session, letter(""))
  })

  test("of a template by SMTP, the recipient that left fails alone", async () => {
    const { project } = await unsubscribed()
    await project.post("/v1/templates", {
      name: "news",
      subject: "News",
      text: "Hi",
      publish: true,
    })
    const raw =
      "From: bell@example.test\nX-Svc-Template-Id: news\nX-Svc-Category: news\n\nnot sent\n"
    const session = await login(project.key)
    const alone = submit(session, { raw, to: "ann@example.test" })
    expect(await replyOf(alone)).toBe("550 5.7.1 suppressed_recipient")
    const reply = await submit(session, { raw, to: ["ann@example.test", "ben@example.test"] })
    await deliverAll(service)
    const ids = reply.match(/[0-9a-f-]{36}/g) ?? []
    expect(await Promise.all(ids.map((id) => statusOf(project, id)))).toEqual([
      ["failed", "suppressed_recipient"],
      ["delivered", null],
    ])
  })

  test("an email of the category that waits already fails, and a copy to the address is left out", async () => {
    const project = await service.project()
    const path = await linkIn(project)
    const { body } = await project.post("/v1/emails", mail({ category: "news" }))
    await oneClick(path)
    await deliverAll(service)
    expect(await statusOf(project, body.id)).toEqual(["failed", "suppressed_recipient"])
    const copied = mail({ category: "news", to: "ben@example.test", cc: "ann@example.test" })
    const { body: second } = await project.post("/v1/emails", copied)
    const handed = await deliverAll(service)
    expect(handed.find(({ message_id }) => message_id === second.id)?.to).toEqual([
      "ben@example.test",
    ])
  })

  test("the person comes back on the preference page, and gets the category again", async () => {
    const project = await service.project()
    const path = await linkIn(project)
    await oneClick(path)
    const body = new URLSearchParams({
      action: "save",
      "seen category:news": "1",
      "get category:news": "1",
    }).toString()
    const preferences = path.replace("/u/", "/p/")
    await stranger(service).call("POST", preferences, { body, headers: FORM })
    const { status, body: sent } = await project.post("/v1/emails", mail({ category: "news" }))
    expect(status).toBe(201)
    await deliverAll(service)
    expect(await statusOf(project, sent.id)).toEqual(["delivered", null])
  })
})
