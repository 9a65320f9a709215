import { describe, expect, test } from "bun:test"
import { isoFrom, millis, nextTurn, sleep } from "../../src/core/time"
import { emit } from "../../src/events/emit"
import * as feed from "../../src/events/feed"
import { complaints } from "../harness/client"
import { type TestProject, type TestService, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { received } from "./received"

const service = await sharedService()

const TO = "to=support@in.example.test"

const waitFor = (project: TestProject, query: string) =>
  project.get(`/v1/inbound-emails/wait?${query}`)

/** As the processing of a mail does it: the row, then the event in a commit. */
async function arrives(
  { store }: TestService,
  { account_id, project_id }: TestProject,
  more: Parameters<typeof received>[2] = {},
) {
  const row = await received(service, { account_id, project_id }, more)
  const event = { account_id, project_id, subject_id: null, type: "email.received", data: {} }
  await store.tx((tx) => emit(tx, event))
  return row
}

describe("a wait", () => {
  test("answers at once with the newest mail that is there", async () => {
    const project = await service.project()
    await received(service, project, { subject: "old" })
    const { id } = await received(service, project)
    await received(service, project, { to_email: "other@in.example.test" })
    const { status, body } = await waitFor(project, "to=Support@IN.example.test")
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ id, text_body: "Where is it?", extracted: null })
  })

  test("answers null at its end, also where the mail is another project's or not processed", async () => {
    const [project, other] = [await service.project(), await service.project()]
    await received(service, other)
    await received(service, project, { status: "received" })
    const { status, body } = await waitFor(project, `${TO}&timeout=0`)
    expect([status, body.data]).toEqual([200, null])
  })

  test("passes by what came before `since`", async () => {
    const project = await service.project()
    await received(service, project, { created_at: isoFrom(millis() - 60_000) })
    const since = encodeURIComponent(isoFrom(millis() - 1000))
    expect((await waitFor(project, `${TO}&timeout=0&since=${since}`)).body.data).toBeNull()
    const { id } = await received(service, project)
    expect((await waitFor(project, `${TO}&timeout=0&since=${since}`)).body.data.id).toBe(id)
  })

  test("is woken by the commit that brings the mail", async () => {
    const project = await service.project()
    const waiting = waitFor(project, `${TO}&timeout=25`)
    await sleep(20)
    const { id } = await arrives(service, project)
    expect((await waiting).body.data.id).toBe(id)
  })

  test("looks again only after a commit of its project, and not before", async () => {
    const { store } = service
    const [ours, others] = [await service.project(), await service.project()]
    let looks = 0
    const look = async () => {
      looks += 1
      return looks === 2 ? "found" : undefined
    }
    const { signal } = new AbortController()
    const waiting = feed.untilFound(store.read, ours.project_id, { wait_ms: 30_000, signal, look })
    const tell = ({ account_id, project_id }: TestProject) => {
      const event = { account_id, project_id, subject_id: null, type: "email.sent", data: {} }
      return store.tx((tx) => emit(tx, event))
    }
    await tell(others)
    expect(looks).toBe(1)
    await tell(ours)
    await nextTurn()
    expect(looks).toBe(2)
    expect([await waiting, looks]).toEqual(["found", 2])
  })

  test("answers what it has when the server drains", async () => {
    await using own = await testService()
    const project = await own.project()
    const begun = Promise.withResolvers<void>()
    const onDrain = own.health.onDrain.bind(own.health)
    own.health.onDrain = (listener) => {
      begun.resolve()
      return onDrain(listener)
    }
    const waiting = waitFor(project, `${TO}&timeout=25`)
    await begun.promise // a request that comes to a draining server is refused
    own.health.drain()
    const { status, body } = await waiting
    expect([status, body.data]).toEqual([200, null])
  })

  test.each(["", "to=two", "to=a,b@c.test", `${TO}&timeout=26`, `${TO}&since=yesterday`])(
    "for %j is refused",
    async (query) => {
      const refused = await waitFor(await service.project(), query)
      const field = /timeout|since/.exec(query)?.[0] ?? "to"
      expect([refused.status, complaints(refused)]).toEqual([422, [field]])
    },
  )

  test("for anything but a code or a link is refused", async () => {
    const refused = await waitFor(await service.project(), `${TO}&extract=password`)
    expect([refused.status, complaints(refused)]).toEqual([422, ["extract"]])
  })
})

describe("what is extracted", () => {
  test("is the code of the newest mail that has one", async () => {
    const project = await service.project()
    await received(service, project, { bodies: { text_body: "Your code is 111111." } })
    await received(service, project, { bodies: { text_body: "Your code is 493027." } })
    await received(service, project, { bodies: { text_body: "Welcome!" } })
    const { data } = (await waitFor(project, `${TO}&extract=otp`)).body
    expect(data.extracted).toBe("493027")
  })

  test("is found in html, and a link in either", async () => {
    const project = await service.project()
    const html_body =
      '<p>Your code is <b>493027</b></p><a href="https://example.com/verify?t=1&amp;u=2">Verify</a>'
    await received(service, project, { bodies: { text_body: null, html_body } })
    const otp = (await waitFor(project, `${TO}&extract=otp`)).body.data
    const link = (await waitFor(project, `${TO}&extract=link`)).body.data
    expect([otp.extracted, link.extracted]).toEqual([
      "493027",
      "https://example.com/verify?t=1&u=2",
    ])
  })

  test("is null at the end for a mail without it", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { bodies: { text_body: "Welcome!" } })
    const { data } = (await waitFor(project, `${TO}&extract=otp&timeout=0`)).body
    expect(data).toMatchObject({ id, extracted: null })
  })
})
